"""A training step of the small Transformer: what each lever is worth, and how near it is to the limit of the machine.

    python benchmarks/transformer_cost.py [--quick] [--json FILE] [--threads N]

One training step = forward, loss over the real target tokens, backward, clipping, optimiser; 3 + 3 layers of 256, two
vocabularies of 8,000, batches of 64 sentences of like length with the lengths of image captions. All variants get the
same batches, take turns, and each figure is the median of its rounds; with one thread in processor time, which other
work on the machine disturbs less. The limit is what a square matrix product of this machine reaches in the same rounds.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from hotloop.data.text.batch import Batch
from hotloop.models import transformer_layers
from hotloop.models.transformer import Transformer
from hotloop.tasks.translation import token_losses
from hotloop.vocabulary import BOS, EOS, PAD

VOCABULARY, HIDDEN, HEADS, INNER, LAYERS, DROPOUT = 8_000, 256, 4, 1_024, 3, 0.1
clock = time.perf_counter
SQUARE = 1_024  # side of the matrices whose product says what the machine can do


class AsOftenWritten(nn.Module):
    """`nn.Transformer` with the right masks, all logits, padding too."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = (nn.Embedding(VOCABULARY, HIDDEN, padding_idx=PAD) for _ in range(2))
        self.transformer = nn.Transformer(
            HIDDEN, HEADS, LAYERS, LAYERS, INNER, DROPOUT, batch_first=True, norm_first=True
        )
        self.project = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def losses(self, batch: Batch) -> Tensor:
        target_in, labels = batch.target[:, :-1], batch.target[:, 1:]
        padded = batch.source == PAD
        hidden = self.transformer(
            self.source(batch.source), self.target(target_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target_in.shape[1], dtype=torch.bool),
            src_key_padding_mask=padded, memory_key_padding_mask=padded,
        )  # fmt: skip
        return F.cross_entropy(self.project(hidden).flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction="none")


class Small(Transformer):
    """hotloop's model, with the loss of its task."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            source_vocabulary=VOCABULARY,
            target_vocabulary=VOCABULARY,
            shared_vocabulary=False,
            dropout=DROPOUT,
            **options,
        )

    def losses(self, batch: Batch) -> Tensor:
        return token_losses(self, batch)[0]


@dataclass
class Variant:
    name: str
    model: Small | AsOftenWritten
    half: bool = False
    fused: bool = True
    patch: Callable[[], AbstractContextManager[Any]] = nullcontext
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = {"fused": True} if self.fused else {}
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, **options)

    def step(self, batch: Batch) -> None:
        start = clock()
        with self.patch(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            loss = self.model.losses(batch).sum() / int((batch.target_length - 1).sum())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.seconds.append(clock() - start)


def fused_attention() -> AbstractContextManager[Any]:
    """The layers with the fused kernel in half precision, too."""
    return mock.patch.multiple(transformer_layers, HALVES=())


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
    rounds, rows = (2, 8) if options.quick else (12, 64)
    plain = Variant("float32", Small())
    variants = [
        plain,
        Variant("float32, activation checkpointing", Small(activation_checkpointing=True)),
        Variant("float32, nn.Transformer as often written", AsOftenWritten(), fused=False),
        Variant("bfloat16 (autocast)", Small(), half=True),
        Variant("bfloat16, fused attention", Small(), half=True, patch=fused_attention),
    ]
    machine: list[float] = []
    batches = [caption_batch(rows) for _ in range(rounds + 1)]
    for turn, batch in enumerate(batches):
        for variant in variants[turn % len(variants) :] + variants[: turn % len(variants)]:
            variant.step(batch)
        machine.append(matrix_product())
    tokens = statistics.mean(int((batch.target_length - 1).sum()) for batch in batches[1:])
    rate = 2 * SQUARE**3 / statistics.median(machine[1:])
    with FlopCounterMode(display=False) as counter:
        plain.step(batches[0])
    work = counter.get_total_flops() / int((batches[0].target_length - 1).sum())

    print(f"CPU {platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}; {rows} sentences")
    print(f"matrix product: {rate / 1e9:.0f} GFLOP/s in float32; a target token: {work / 1e6:.1f} MFLOP\n")
    print(f"{'variant':<44}{'ms a step':>10}{'tokens/s':>10}{'of limit':>10}{'kept MB':>9}")
    report: dict[str, Any] = {"gflops": rate / 1e9, "mflop_a_token": work / 1e6, "rounds": rounds, "variants": {}}
    for variant in variants:
        seconds = statistics.median(variant.seconds[1 : rounds + 1])
        row = {"ms": 1e3 * seconds, "tokens_per_s": tokens / seconds, "share": work * tokens / seconds / rate}
        row["kept_mb"] = kept_for_backward(variant, batches[0])
        report["variants"][variant.name] = row
        print(
            f"{variant.name:<44}{row['ms']:>10.0f}{row['tokens_per_s']:>10,.0f}{row['share']:>10.0%}{row['kept_mb']:>9.0f}"
        )
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def caption_batch(rows: int) -> Batch:
    """Sources of one length, targets of like lengths, as bucketing deals captions."""
    source_length = int(torch.randint(9, 22, ()))
    lengths = torch.randint(source_length - 1, source_length + 2, (rows,)).sort().values
    source, target = (torch.randint(4, VOCABULARY, (rows, width)) for width in (source_length, int(lengths.max()) + 1))
    source[:, -1], target[:, 0] = EOS, BOS
    target[torch.arange(target.shape[1]) > lengths[:, None]] = PAD
    return Batch(source, torch.full((rows,), source_length), target, lengths + 1, torch.arange(rows))


def matrix_product() -> float:
    """Seconds of one product, the best of five: the limit, not the noise."""
    one, other, seconds = torch.randn(SQUARE, SQUARE), torch.randn(SQUARE, SQUARE), []
    for _ in range(5):
        start = clock()
        one @ other
        seconds.append(clock() - start)
    return min(seconds)


def kept_for_backward(variant: Variant, batch: Batch) -> float:
    """Megabytes that the forward pass keeps, weights not counted, each piece of memory once."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in variant.model.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor)
    with hooks, variant.patch(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=variant.half):
        variant.model.losses(batch)
    return sum(kept.values()) / 1e6


if __name__ == "__main__":
    main()
