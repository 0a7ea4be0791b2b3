"""How fast sentences are translated, and what the key/value cache and the shared source of a beam are worth.

    python benchmarks/decoding_cost.py [--quick] [--json FILE] [--threads N]

Batches of 64 random sentences with the lengths of image captions, every translation exactly 15 tokens long, so that no
state of training matters; vocabularies of 8,000. The Transformer has 3 + 3 layers of 256, the LSTM 2 + 2 of 256 with
attention. The variants take turns; each figure is the median of its rounds, with one thread in processor time, which
other work on the machine disturbs less. All variants of a model have to give the same translations, but for a few where
rounding decides between equals.
"""

import argparse
import json
import platform
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotloop.decoding import SearchOptions, search
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer, TransformerState
from hotloop.vocabulary import EOS

VOCABULARY, LENGTH = 8_000, 15
clock = time.perf_counter
SIZES = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}


@dataclass(frozen=True)
class Prefix:
    """All that a model without a cache remembers."""

    source: Tensor  # (N, S)
    source_length: Tensor  # (N,)
    tokens: Tensor  # (N, t)
    attention: None = None

    def select(self, rows: Tensor, *, width: int = 1) -> "Prefix":
        return Prefix(self.source[rows], self.source_length[rows], self.tokens[rows])


class WithoutCache(Transformer):
    """Reads the source and the words so far again for each word."""

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> Any:
        return Prefix(source, source_length, source[:, :0])

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        tokens = torch.cat((state.tokens, token[:, None]), dim=1)
        length = torch.full((len(tokens),), tokens.shape[1])
        hidden = self(state.source, state.source_length, tokens, length)
        return self.project(hidden[:, -1]), replace(state, tokens=tokens)


class SourceOnce(Transformer):
    """Has a cache of the target and encodes the source once, but keeps it for each hypothesis of a beam."""

    def step(self, token: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        if state.width > 1:
            rows = torch.arange(len(state.source[0][0])).repeat_interleave(state.width)
            source = tuple((key[rows], value[rows]) for key, value in state.source)
            state = replace(state, source=source, mask=None if state.mask is None else state.mask[rows], width=1)
        return super().step(token, state)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sentences; says little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    global clock
    clock = time.process_time if options.threads == 1 else time.perf_counter
    torch.manual_seed(0)
    rounds, rows = (1, 8) if options.quick else (5, 64)
    model = Transformer(**SIZES, shared_vocabulary=False)
    variants: dict[str, Any] = {"Transformer": model}
    for name, kind in (("beam's source kept for each hypothesis", SourceOnce), ("no cache", WithoutCache)):
        other = kind(**SIZES, shared_vocabulary=False)
        other.load_state_dict(model.state_dict())
        variants[f"Transformer, {name}"] = other
    variants["LSTM with attention"] = Seq2Seq(**SIZES, embedding=256, hidden=256, attention="general")
    seconds: dict[tuple[str, int], list[float]] = {(name, beam): [] for name in variants for beam in (1, 5)}
    for _ in range(rounds + 1):
        source, source_length = captions(rows)
        for beam in (1, 5):
            found = {}
            for name, variant in variants.items():
                start = clock()
                asked = SearchOptions(beam_size=beam, min_length=LENGTH, max_length=LENGTH)
                found[name] = [group[0].tokens for group in search(variant, source, source_length, asked)]
                seconds[name, beam].append(clock() - start)
            for name in variants:
                other = sum(one != two for one, two in zip(found[name], found["Transformer"], strict=True))
                if name.startswith("Transformer") and other > rows // 20:
                    raise SystemExit(f"beam {beam}: {other} of {rows} translations differ ({name})")

    machine = f"CPU {platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    print(f"{machine}; float32, {rows} sentences")
    print(f"\n{'sentences/s':<56}{'greedy':>10}{'beam 5':>10}")
    report: dict[str, Any] = {"rounds": rounds, "sentences_per_s": {}}
    for name in variants:
        rates = {beam: rows / statistics.median(seconds[name, beam][1:]) for beam in (1, 5)}
        report["sentences_per_s"][name] = {"greedy": rates[1], "beam 5": rates[5]}
        print(f"{name:<56}{rates[1]:>10.1f}{rates[5]:>10.1f}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def captions(rows: int) -> tuple[Tensor, Tensor]:
    """Sources (B, S) of like length with EOS, and their lengths (B,)."""
    longest = int(torch.randint(9, 22, ()))
    length = torch.randint(longest - 1, longest + 1, (rows,)).sort().values
    length[-1] = longest
    source = torch.randint(4, VOCABULARY, (rows, longest))
    source[torch.arange(rows), length - 1] = EOS
    return source, length


if __name__ == "__main__":
    main()
