"""What the projection onto the vocabulary and its loss cost in memory and time: all logits, chunks, and PyTorch's own.

    python benchmarks/output_loss.py [--quick] [--json FILE] [--threads N] [--tokens N]

Forward and backward over the same hidden states and labels. Each variant runs in a process of its own, because the peak
of resident memory is one of a whole process; it is told beyond what the process held before the first step (weights and
their gradients included). Time is processor time, the median of the rounds, so that other work on the machine disturbs
it little; the variants take turns. Losses and gradients are checked against those of all logits at once.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from hotloop.tasks.chunked_loss import chunked_losses
from hotloop.tasks.losses import smoothed_cross_entropy

HIDDEN, VOCABULARIES = 512, (8_000, 32_000)
SMOOTHING = 0.1

Loss = Callable[[nn.Linear, Tensor, Tensor], Tensor]


def all_at_once(projection: nn.Linear, hidden: Tensor, labels: Tensor) -> Tensor:
    return smoothed_cross_entropy(projection(hidden), labels, SMOOTHING)[0].sum()


def plain_pytorch(projection: nn.Linear, hidden: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(projection(hidden), labels, reduction="sum", label_smoothing=SMOOTHING)


def in_chunks(chunk: int) -> Loss:
    def loss(projection: nn.Linear, hidden: Tensor, labels: Tensor) -> Tensor:
        return chunked_losses(projection, hidden, labels, chunk=chunk, smoothing=SMOOTHING)[0].sum()

    return loss


def checkpointed(chunk: int) -> Loss:
    """Chunks that are projected again in the backward pass."""

    def part_loss(projection: nn.Linear, part: Tensor, wanted: Tensor) -> Tensor:
        return all_at_once(projection, part, wanted)

    def loss(projection: nn.Linear, hidden: Tensor, labels: Tensor) -> Tensor:
        parts = zip(hidden.split(chunk), labels.split(chunk), strict=True)
        return sum(checkpoint(part_loss, projection, *pair, use_reentrant=False) for pair in parts)  # type: ignore

    return loss


def fused_pytorch(projection: nn.Linear, hidden: Tensor, labels: Tensor) -> Tensor:
    options = nn.LinearCrossEntropyOptions()
    more = {"linear_bias": projection.bias, "reduction": "sum", "label_smoothing": SMOOTHING, "options": options}
    return F.linear_cross_entropy(hidden, projection.weight, labels, **more)


ALL, CHUNKS = "all logits at once", "chunks of 512"
VARIANTS: dict[str, Loss] = {
    ALL: all_at_once,
    "F.cross_entropy, smoothed": plain_pytorch,
    "chunks of 1,024": in_chunks(1024),
    CHUNKS: in_chunks(512),
    "chunks of 128": in_chunks(128),
    "chunks of 512, projected twice": checkpointed(512),
}
if hasattr(F, "linear_cross_entropy") and hasattr(nn, "LinearCrossEntropyOptions"):
    VARIANTS["F.linear_cross_entropy"] = fused_pytorch


def measure(name: str, vocabulary: int, tokens: int, rounds: int) -> dict[str, float]:
    """Processor seconds a round, peak memory beyond the start in MiB, the loss, and a sum over the gradients."""
    torch.manual_seed(0)
    projection = nn.Linear(HIDDEN, vocabulary)
    hidden = torch.randn(tokens, HIDDEN, requires_grad=True)
    labels = torch.randint(0, vocabulary, (tokens,))
    for leaf in (hidden, *projection.parameters()):
        leaf.grad = torch.zeros_like(leaf)
    small = hidden[:32].detach().requires_grad_()
    VARIANTS[name](projection, small, labels[:32]).backward()  # threads and kernels are there
    before, times, loss = peak_mib(), [], torch.zeros(())
    for _ in range(rounds):
        for leaf in (hidden, *projection.parameters()):
            leaf.grad.zero_()  # type: ignore[union-attr]
        start = time.process_time()
        loss = VARIANTS[name](projection, hidden, labels) / tokens
        loss.backward()
        times.append(time.process_time() - start)
    assert projection.weight.grad is not None and hidden.grad is not None
    return {
        "seconds": statistics.median(times),
        "mib": peak_mib() - before,
        "loss": loss.item(),
        "gradient": (projection.weight.grad.abs().sum() + hidden.grad.abs().sum()).item(),
    }


def peak_mib() -> float:
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def in_a_process(name: str, vocabulary: int, tokens: int, threads: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, str(vocabulary), "--tokens", str(tokens)]
    done = subprocess.run([*command, "--threads", str(threads)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of fewer tokens; says little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    parser.add_argument("--tokens", type=int, help="target tokens (default 4096, with --quick 1024)")
    parser.add_argument("--one", nargs=2, metavar=("VARIANT", "VOCABULARY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokens = options.tokens or (1024 if options.quick else 4096)
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), tokens, rounds=2)))
        return

    rounds = 1 if options.quick else 3
    machine = f"CPU {platform.machine()}, {options.threads} threads, torch {torch.__version__}"
    print(f"{machine}; {tokens} tokens of width {HIDDEN}, medians of {rounds} processes of 2 rounds")
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for vocabulary in VOCABULARIES:
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
        for _ in range(rounds):
            for name, found in runs.items():
                found.append(in_a_process(name, vocabulary, tokens, options.threads))
        figures[str(vocabulary)] = {
            name: {key: statistics.median(run[key] for run in found) for key in found[0]}
            for name, found in runs.items()
        }
        check(figures[str(vocabulary)], vocabulary)

    for vocabulary_name, rows in figures.items():
        print(f"\n{'vocabulary ' + vocabulary_name:<34}{'seconds':>10}{'ratio':>8}{'peak MiB':>10}{'ratio':>8}")
        for name, row in rows.items():
            ratios = row["seconds"] / rows[ALL]["seconds"], row["mib"] / rows[ALL]["mib"]
            print(f"{name:<34}{row['seconds']:>10.2f}{ratios[0]:>8.2f}{row['mib']:>10.0f}{ratios[1]:>8.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "tokens": tokens, "figures": figures}, indent=2) + "\n")


def check(rows: dict[str, dict[str, float]], vocabulary: int) -> None:
    """Every variant has the loss and the gradients of all logits at once."""
    for name, row in rows.items():
        for key in ("loss", "gradient"):
            if abs(row[key] - rows[ALL][key]) > 1e-4 * abs(rows[ALL][key]):
                raise SystemExit(f"vocabulary {vocabulary}, {name}: {key} {row[key]}, all at once {rows[ALL][key]}")


if __name__ == "__main__":
    main()
