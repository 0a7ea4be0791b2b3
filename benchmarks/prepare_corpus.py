"""How long a corpus takes to prepare, how much memory, and how fast it opens and is read afterwards.

    python benchmarks/prepare_corpus.py                       2,000,000 generated pairs
    python benchmarks/prepare_corpus.py --quick               20,000
    python benchmarks/prepare_corpus.py --text FR EN          the lines of two files, repeated with numbers behind

Memory is the sum of the resident sets of all processes (shared pages counted in each), sampled 20 times a second,
PyTorch and Lightning included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20,000 pairs")
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--kind", default="bpe", choices=["word", "bpe", "unigram"])
    parser.add_argument("--text", nargs=2, type=Path, metavar=("FR", "EN"))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)  # a run of this program inside itself
    options = parser.parse_args()
    if options.step:
        step(*options.step)
        return
    pairs = 20_000 if options.quick else options.pairs
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), pairs, options.text)
        result = {"pairs": pairs, "kind": options.kind}
        for name in ("prepare", "open"):
            result.update(measured(Path(folder), name, options.kind))
    for key, value in result.items():
        print(f"{key:<28}{value:>14,}" if isinstance(value, int) else f"{key:<28}{value:>14}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


def write_corpus(folder: Path, pairs: int, text: list[Path] | None) -> None:
    with open(folder / "train.fr", "w", encoding="utf-8") as fr, open(folder / "train.en", "w", encoding="utf-8") as en:
        for source, target in itertools.islice(endless(text), pairs):
            fr.write(source + "\n")
            en.write(target + "\n")


def endless(text: list[Path] | None) -> Iterator[tuple[str, str]]:
    if text is None:
        from hotloop.data.text.parliament import generate

        yield from generate(1)
    else:
        sides = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in text]
        for turn in itertools.count():
            for number, (source, target) in enumerate(zip(*sides, strict=True)):
                yield (f"{source} {turn}.{number}", f"{target} {turn}.{number}") if turn else (source, target)


def measured(folder: Path, name: str, kind: str) -> dict[str, Any]:
    """The figures that a child process reports, and the peak of its tree of processes."""
    import psutil

    child = subprocess.Popen(
        [sys.executable, __file__, "--step", name, str(folder), "--kind", kind], stdout=subprocess.PIPE, text=True
    )
    tree, peak = psutil.Process(child.pid), 0
    while child.poll() is None:
        resident = 0
        try:
            for process in (tree, *tree.children(recursive=True)):
                resident += process.memory_info().rss
        except psutil.Error:  # a process ended while it was being read
            continue
        peak = max(peak, resident)
        time.sleep(0.05)
    assert child.stdout is not None
    if child.returncode:
        raise SystemExit(f"{name} failed")
    return {**json.loads(child.stdout.read()), f"{name}_peak_mb": peak >> 20}


def step(name: str, folder: str) -> None:
    from hotloop.data.text.bitext import BitextDataModule
    from hotloop.data.text.corpora import BitextFolder

    kind = sys.argv[sys.argv.index("--kind") + 1]
    data = BitextDataModule(
        corpus=BitextFolder(dir=folder, valid=None, test=None), tokenizer={"kind": kind}, cache_dir=f"{folder}/cache"
    )
    start = time.perf_counter()
    if name == "prepare":
        data.prepare_data()
        print(json.dumps({"prepare_s": round(time.perf_counter() - start, 1)}))
        return
    data.prepare_data()
    data.setup()
    opened = time.perf_counter() - start
    loader = iter(data.train_dataloader())
    next(loader)
    first = time.perf_counter() - start - opened
    start = time.perf_counter()
    pairs = sum(len(batch) for batch in itertools.islice(loader, 2_000))
    rate = pairs / (time.perf_counter() - start)
    size = sum(path.stat().st_size for path in Path(folder, "cache").rglob("*.npy"))
    share = data.summary()["padding_share"]
    print(json.dumps({
        "open_s": round(opened, 2), "first_batch_s": round(first, 2), "pairs_per_s": round(rate),
        "disk_mb": size >> 20, "padding_source": share["source"], "padding_target": share["target"],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
