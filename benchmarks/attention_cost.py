"""What attention costs in training: all steps in one call, none at all, and word by word as usually first written.

    python benchmarks/attention_cost.py [--quick] [--json FILE] [--batch-size N] [--threads N] [--device cuda]

One training step = forward, loss over the real target tokens, backward, optimiser. Random sentences of 15 to 25 tokens
in batches of like length, as the data module deals them; every variant gets the same batches and starts from the same
weights. The variants take turns and each figure is the median of its rounds, so that a busy moment of the machine hits
all of them. The loss of the word-by-word variants is checked against that of the fast one in every round.
"""

import argparse
import copy
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotloop.data.text.batching import BucketBatchSampler
from hotloop.models.attention import Memory
from hotloop.models.seq2seq import Seq2Seq, Seq2SeqState
from hotloop.vocabulary import BOS, EOS, PAD

PUBLISHED = {
    "source_vocabulary": 10_411, "target_vocabulary": 10_017, "embedding": 300, "hidden": 512,
    "encoder_layers": 4, "decoder_layers": 4,
}  # fmt: skip
SMALL = {"source_vocabulary": 2_000, "target_vocabulary": 2_000, "embedding": 128, "hidden": 128}


Sizes = dict[str, Any]


@dataclass(frozen=True)
class Pairs:
    source: Tensor  # (B, S)
    source_length: Tensor  # (B,), CPU
    target: Tensor  # (B, T), BOS … EOS
    target_length: Tensor  # (B,), CPU


def parallel_loss(model: Seq2Seq, pairs: Pairs) -> Tensor:
    """One decoder call, one attention call, one projection of the real tokens."""
    target_in, labels, steps = pairs.target[:, :-1], pairs.target[:, 1:], pairs.target_length - 1
    hidden = model(pairs.source, pairs.source_length, target_in, steps)
    real = labels != PAD
    return F.cross_entropy(model.project(hidden[real]), labels[real])


def word_by_word_loss(model: Seq2Seq, pairs: Pairs) -> Tensor:
    """Embedding, LSTM, attention and vocabulary at every step, padding too, all logits kept."""
    state = model.start(pairs.source, pairs.source_length)
    assert state.memory is not None
    memory = state.memory
    return _loop(model, pairs, state, lambda: memory)


def source_anew_loss(model: Seq2Seq, pairs: Pairs) -> Tensor:
    """The same with the attention layer's map of the encoder outputs inside the loop, where it gives the same again."""
    encoder_outputs: list[Tensor] = []
    hook = model.memory.register_forward_hook(lambda module, inputs, output: encoder_outputs.append(inputs[0]))
    state = model.start(pairs.source, pairs.source_length)
    hook.remove()
    assert state.memory is not None
    mask = state.memory.mask
    return _loop(model, pairs, state, lambda: model.attention.remember(model.memory(encoder_outputs[0]), mask))


def _loop(model: Seq2Seq, pairs: Pairs, state: Seq2SeqState, memory: Callable[[], Memory]) -> Tensor:
    lstm_state = torch.stack(state.hidden), torch.stack(state.cell)
    logits = []
    for step in range(pairs.target.shape[1] - 1):
        embedded = model.target_embedding(pairs.target[:, step : step + 1])
        output, lstm_state = model.decoder(embedded, lstm_state)
        context = model.attention(output, memory())
        output = torch.tanh(model.combine(torch.cat((context, output), dim=-1)))
        logits.append(model.project(output))
    return F.cross_entropy(torch.cat(logits, dim=1).flatten(0, 1), pairs.target[:, 1:].flatten(), ignore_index=PAD)


FAST, PLAIN = "all steps at once", "all steps at once, no attention"
SLOW, SLOWEST = "word by word", "word by word, source mapped at each word"
VARIANTS: dict[str, tuple[bool, Callable[[Seq2Seq, Pairs], Tensor]]] = {
    FAST: (True, parallel_loss),
    PLAIN: (False, parallel_loss),
    SLOW: (True, word_by_word_loss),
    SLOWEST: (True, source_anew_loss),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sentences; says little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--batch-size", type=int, help="pairs (default 64, with --quick 16)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default cpu)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    rounds, batch_size = (2, 16) if options.quick else (7, 64)
    batch_size = options.batch_size or batch_size

    print(f"{describe(device)}; batch {batch_size}, medians of {rounds} rounds, 15-25 tokens a side")
    comparisons, figures = [], {}
    for name, sizes, goal in (("published", PUBLISHED, ">= 1.8"), ("small", SMALL, ">= 3.0")):
        batches = bucketed_batches(sizes, batch_size, rounds + 1, device)
        seconds = compare(sizes, batches, device)
        figures[name] = seconds
        comparisons += [
            (f"{name}: attention / no attention", seconds[FAST] / seconds[PLAIN], "<= 1.15"),
            (f"{name}: word by word / all steps at once", seconds[SLOW] / seconds[FAST], goal),
            (f"{name}: ... mapping the source at each word / all at once", seconds[SLOWEST] / seconds[FAST], goal),
        ]
    lengths = {f"T = {steps}": [equal_batch(SMALL, batch_size, steps, device)] for steps in (20, 40)}
    figures["lengths"] = compare_lengths(SMALL, lengths, rounds, device)
    comparisons.append(
        ("small: 40 tokens / 20 tokens", figures["lengths"]["T = 40"] / figures["lengths"]["T = 20"], "<= 2.6")
    )

    print(f"\n{'model and variant':<60}{'ms a step':>10}")
    for name, seconds in figures.items():
        for variant, value in seconds.items():
            print(f"{name + ': ' + variant:<60}{value * 1e3:>10.1f}")
    print(f"\n{'ratio':<60}{'measured':>10}{'target':>10}")
    for name, ratio, target in comparisons:
        print(f"{name:<60}{ratio:>10.2f}{target:>10}")
    if options.json:
        report = {
            "machine": describe(device),
            "batch_size": batch_size,
            "rounds": rounds,
            "seconds_a_step": figures,
            "ratios": {name: {"measured": ratio, "target": target} for name, ratio, target in comparisons},
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def compare(sizes: Sizes, batches: list[Pairs], device: torch.device) -> dict[str, float]:
    """Median seconds of a training step of each variant; the first round warms up."""
    torch.manual_seed(0)
    models = {True: Seq2Seq(attention="scaled_dot", **sizes), False: Seq2Seq(attention=None, **sizes)}
    variants, trainers = list(VARIANTS), {}
    for variant, (attends, loss) in VARIANTS.items():
        trainers[variant] = Trainer(copy.deepcopy(models[attends]).to(device), loss, device)
    times: dict[str, list[float]] = {variant: [] for variant in variants}
    for number, pairs in enumerate(batches):
        losses = {}
        for variant in variants[number % len(variants) :] + variants[: number % len(variants)]:
            seconds, losses[variant] = trainers[variant].step(pairs)
            if number > 0:
                times[variant].append(seconds)
        for variant in (SLOW, SLOWEST):
            if abs(losses[variant] - losses[FAST]) > 1e-4:
                raise SystemExit(f"round {number}: loss {losses[FAST]:.6f} at once, {losses[variant]:.6f} {variant}")
    return {variant: statistics.median(values) for variant, values in times.items()}


def compare_lengths(
    sizes: Sizes, batches: dict[str, list[Pairs]], rounds: int, device: torch.device
) -> dict[str, float]:
    """Median seconds of the fast variant's training step for each length."""
    torch.manual_seed(0)
    trainer = Trainer(Seq2Seq(attention="scaled_dot", **sizes).to(device), parallel_loss, device)
    times: dict[str, list[float]] = {name: [] for name in batches}
    for number in range(3 * rounds + 1):
        for name, (pairs,) in batches.items():
            seconds, _ = trainer.step(pairs)
            if number > 0:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


class Trainer:
    """A model, its optimiser and the clock."""

    def __init__(self, model: Seq2Seq, loss: Callable[[Seq2Seq, Pairs], Tensor], device: torch.device) -> None:
        self.model, self.loss, self.device = model, loss, device
        self.optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(self, pairs: Pairs) -> tuple[float, float]:
        """Seconds and loss of one training step."""
        self._wait()
        start = time.perf_counter()
        loss = self.loss(self.model, pairs)
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()
        self._wait()
        return time.perf_counter() - start, loss.item()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def bucketed_batches(sizes: Sizes, batch_size: int, count: int, device: torch.device) -> list[Pairs]:
    """Random sentences of 15 to 25 tokens a side, in batches as training deals them from a corpus."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(15, 26, (2, 200 * batch_size), generator=generator, dtype=torch.int32).numpy()
    batches = BucketBatchSampler(lengths[0], lengths[1], batch_size=batch_size, shuffle=True)
    return [make_batch(sizes, lengths[:, ids].T.tolist(), generator, device) for ids in islice(batches, count)]


def equal_batch(sizes: Sizes, batch_size: int, steps: int, device: torch.device) -> Pairs:
    """Every row has ``steps`` tokens on both sides."""
    return make_batch(sizes, [[steps, steps]] * batch_size, torch.Generator().manual_seed(0), device)


def make_batch(sizes: Sizes, lengths: list[list[int]], generator: torch.Generator, device: torch.device) -> Pairs:
    sources, targets = [], []
    for source_words, target_words in lengths:
        words = torch.randint(4, sizes["source_vocabulary"], (source_words,), generator=generator)
        sources.append(torch.cat((words, torch.tensor([EOS]))))
        words = torch.randint(4, sizes["target_vocabulary"], (target_words,), generator=generator)
        targets.append(torch.cat((torch.tensor([BOS]), words, torch.tensor([EOS]))))
    pad = nn.utils.rnn.pad_sequence
    return Pairs(
        pad(sources, batch_first=True, padding_value=PAD).to(device),
        torch.tensor([len(row) for row in sources]),
        pad(targets, batch_first=True, padding_value=PAD).to(device),
        torch.tensor([len(row) for row in targets]),
    )


def describe(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    return f"CPU {platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"


if __name__ == "__main__":
    main()
