"""How long a corpus takes to prepare, how much memory, and how fast it opens and is read afterwards.

    python benchmarks/prepare_corpus.py                       2,000,000 generated pairs
    python benchmarks/prepare_corpus.py --quick               20,000
    python benchmarks/prepare_corpus.py --text FR EN          the lines of two files, repeated with other words in them
    python benchmarks/prepare_corpus.py --datasets-python P   beside the library `datasets`, which the Python P has

`datasets` does the same with the same sub-word model: reads two text files, normalises and filters them with the same
functions, drops repeated pairs, encodes in two processes, saves; then opens, and pads a batch of 64 random pairs.

Memory is the sum of the resident sets of all processes (shared pages counted in each), sampled 20 times a second,
PyTorch and Lightning included. With a model each, the vocabularies' training is hotloop's alone: "without learning" is
what compares. Seconds to open and to a first batch are those after imports, which are told apart.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "src"  # for an interpreter that has hotloop's dependencies only
CHANGED = 0.1  # share of the words of a repeated sentence that are replaced, one at least
HEAPS = 0.5  # exponent at which new words come with the text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20,000 pairs")
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--kind", default="bpe", choices=["word", "bpe", "unigram"])
    parser.add_argument("--text", nargs=2, type=Path, metavar=("FR", "EN"))
    parser.add_argument("--datasets-python", metavar="PATH", help="interpreter with `datasets` and what hotloop needs")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)  # a run of this program inside itself
    options = parser.parse_args()
    if options.step:
        name, folder = options.step
        result = STEPS[name](Path(folder), options.kind)
        print(json.dumps(result))
        return
    pairs = 20_000 if options.quick else options.pairs
    result = {"pairs": pairs, "kind": options.kind}
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), pairs, options.text)
        for name in ("prepare", "open", "workers"):
            result.update(measured(Path(folder), name, options.kind))
        seconds = result["prepare_s"]
        result["prepare_pairs_per_s"] = round(pairs / seconds)
        result["prepare_pairs_per_s_without_learning"] = round(pairs / (seconds - result["learning_s"]))
        if options.datasets_python and options.kind != "word":
            for name in ("datasets_prepare", "datasets_open"):
                result.update(measured(Path(folder), name, options.kind, python=options.datasets_python))
            result["datasets_prepare_pairs_per_s"] = round(pairs / result["datasets_prepare_s"])
    for key, value in result.items():
        print(f"{key:<40}{value:>14,}" if isinstance(value, int) else f"{key:<40}{value:>14}")
    if "datasets_prepare_s" not in result:
        print("datasets: not measured; python -m venv --system-site-packages FOLDER with `pip install datasets` in it, "
              "then --datasets-python FOLDER/bin/python (and --kind bpe or unigram)")  # fmt: skip
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
        yield from zip(*sides, strict=True)
        yield from zip(*(varied(side, seed=seed) for seed, side in enumerate(sides)), strict=True)


def varied(lines: list[str], *, seed: int) -> Iterator[str]:
    """The lines again and again, no turn like another: some words replaced by others that are as frequent in the text,
    and words that come once by new ones, as many as a text that grows on would bring (V ~ N^HEAPS)."""
    words = [word for line in lines for word in line.split()]
    counts = Counter(words)
    once = [word for word in counts if counts[word] == 1]
    chance = random.Random(seed)
    for turn in itertools.count(1):
        new = len(counts) * ((turn + 1) ** HEAPS - turn**HEAPS)
        renewed = min(new / max(len(once), 1), 1.0)
        for line in lines:
            sentence = line.split()
            for at, word in enumerate(sentence):
                if counts[word] == 1 and chance.random() < renewed:
                    other = chance.choice(once)  # the beginning of one word and the end of another
                    sentence[at] = word[: max(2, len(word) // 2)] + other[len(other) // 2 :]
            for _ in range(max(1, round(CHANGED * len(sentence))) if sentence else 0):
                sentence[int(chance.random() * len(sentence))] = words[int(chance.random() * len(words))]
            yield " ".join(sentence)


def measured(folder: Path, name: str, kind: str, *, python: str = sys.executable) -> dict[str, Any]:
    """The figures that a child process reports, and the peak of its tree of processes."""
    import psutil

    child = subprocess.Popen(
        [python, __file__, "--step", name, str(folder), "--kind", kind],
        env={**os.environ, "PYTHONPATH": str(SOURCES)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
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
    return {**json.loads(child.stdout.read().splitlines()[-1]), f"{name}_peak_mb": peak >> 20}


def data_module(folder: Path, kind: str, **options: Any) -> Any:
    from hotloop.data.text.bitext import BitextDataModule
    from hotloop.data.text.corpora import BitextFolder

    corpus = BitextFolder(dir=folder, valid=None, test=None)
    return BitextDataModule(corpus=corpus, tokenizer={"kind": kind}, cache_dir=folder / "cache", **options)


def prepare(folder: Path, kind: str) -> dict[str, Any]:
    data = data_module(folder, kind)
    start = time.perf_counter()
    data.prepare_data()
    seconds = time.perf_counter() - start
    (meta,) = (json.loads(path.read_text()) for path in (folder / "cache").glob("*/meta.json"))
    stages = {f"{stage.replace(' ', '_')}_s": round(took, 1) for stage, took in meta["stages"].items()}
    return {"prepare_s": round(seconds, 1), "kept": meta["pairs"]["train"], **stages}


def open_(folder: Path, kind: str) -> dict[str, Any]:
    start = time.perf_counter()
    data = data_module(folder, kind)
    imported = time.perf_counter()
    data.prepare_data()
    data.setup()
    opened = time.perf_counter()
    loader = iter(data.train_dataloader())
    next(loader)
    first = time.perf_counter()
    pairs = sum(len(batch) for batch in itertools.islice(loader, 2_000))
    rate = pairs / (time.perf_counter() - first)
    size = sum(path.stat().st_size for path in (folder / "cache").rglob("*.npy"))
    share = data.summary()["padding_share"]
    return {
        "import_s": round(imported - start, 2), "open_s": round(opened - imported, 2),
        "first_batch_s": round(first - opened, 2), "pairs_per_s": round(rate), "disk_mb": size >> 20,
        "padding_source": share["source"], "padding_target": share["target"],
    }  # fmt: skip


def workers(folder: Path, kind: str) -> dict[str, Any]:
    """Megabytes that two loader workers have for themselves, the larger, early and after three epochs (case E24)."""
    data = data_module(folder, kind, batch_size=250, num_workers=2)
    data.setup()
    dataset = data.dataset("train")
    data._datasets["train"] = watched = Watched(dataset)
    loader = data.train_dataloader()
    early = [0, 0]
    late = [0, 0]
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for step, (worker, private) in enumerate(loader):
            late[worker] = private or late[worker]
            if epoch == 0 and step < 20:
                early[worker] = late[worker]
    del watched
    return {"worker_early_mb": round(max(early) / 2**20, 1), "worker_late_mb": round(max(late) / 2**20, 1)}


class Watched:
    """Makes batches, and gives the number of the worker and, now and then, the bytes that are its own."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.given = dataset, 0
        self.source, self.target = dataset.source, dataset.target

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, ids: Any) -> tuple[int, int]:
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        assert worker is not None
        self.dataset[ids]
        self.given += 1
        return worker.id, private_bytes() if self.given <= 10 or self.given % 100 == 0 else 0


def private_bytes() -> int:
    if not os.path.exists("/proc/self/smaps_rollup"):
        return 0
    lines = Path("/proc/self/smaps_rollup").read_text().split("\n")
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def datasets_prepare(folder: Path, kind: str) -> dict[str, Any]:
    import datasets

    from hotloop.data.text.preparing.filters import Filters

    states = json.loads(next((folder / "cache").glob("*/tokenizers.json")).read_text())
    start = time.perf_counter()
    datasets.disable_progress_bars()
    cache = str(folder / "datasets_cache")
    fr, en = (
        datasets.load_dataset("text", data_files=str(folder / f"train.{side}"), cache_dir=cache, split="train")
        for side in ("fr", "en")
    )
    pairs = datasets.concatenate_datasets([fr.rename_column("text", "fr"), en.rename_column("text", "en")], axis=1)
    pairs = pairs.map(cleaned, batched=True, num_proc=2, fn_kwargs={"filters": Filters()})
    seen: set[int] = set()
    pairs = pairs.filter(first_time, batched=True, fn_kwargs={"seen": seen}, new_fingerprint="first_time")
    encoded = pairs.map(
        tokenised, batched=True, num_proc=2, remove_columns=["fr", "en"], fn_kwargs={"states": states},
        new_fingerprint="tokenised",
    )  # fmt: skip
    encoded.save_to_disk(folder / "datasets")
    return {"datasets_prepare_s": round(time.perf_counter() - start, 1), "datasets_kept": len(encoded)}


def cleaned(batch: Any, filters: Any) -> Any:
    from hotloop.data.text.normalisation import normalise

    pairs = [(normalise(fr), normalise(en)) for fr, en in zip(batch["fr"], batch["en"], strict=True)]
    kept = [pair for pair in pairs if filters.reason(*pair) is None]
    return {"fr": [pair[0] for pair in kept], "en": [pair[1] for pair in kept]}


def first_time(batch: Any, seen: set[int]) -> list[bool]:
    keep = []
    for pair in map(hash, zip(batch["fr"], batch["en"], strict=True)):
        keep.append(pair not in seen)
        seen.add(pair)
    return keep


PROCESSORS: dict[str, Any] = {}


def tokenised(batch: Any, states: Any) -> Any:
    """Ids with marks, by sentencepiece on whole lists."""
    import base64

    import sentencepiece

    from hotloop.vocabulary import BOS, EOS

    if not PROCESSORS:
        for side in ("source", "target"):
            model = base64.b64decode(states[side]["model"])
            PROCESSORS[side] = sentencepiece.SentencePieceProcessor(model_proto=model)
    source = PROCESSORS["source"].encode(batch["fr"], num_threads=1)
    target = PROCESSORS["target"].encode(batch["en"], num_threads=1)
    return {"source": [[*row, EOS] for row in source], "target": [[BOS, *row, EOS] for row in target]}


def datasets_open(folder: Path, kind: str) -> dict[str, Any]:
    start = time.perf_counter()
    import datasets
    import torch
    from torch.nn.utils.rnn import pad_sequence

    imported = time.perf_counter()
    pairs = datasets.load_from_disk(folder / "datasets")
    opened = time.perf_counter()
    chance = random.Random(0)

    def batch() -> list[Any]:
        rows = pairs[[chance.randrange(len(pairs)) for _ in range(64)]]
        return [pad_sequence([torch.tensor(row) for row in rows[side]], batch_first=True) for side in rows]

    batch()
    first = time.perf_counter()
    for _ in range(200):
        batch()
    rate = 200 * 64 / (time.perf_counter() - first)
    size = sum(path.stat().st_size for path in (folder / "datasets").rglob("*.arrow"))
    return {
        "datasets_import_s": round(imported - start, 2), "datasets_open_s": round(opened - imported, 2),
        "datasets_first_batch_s": round(first - opened, 2), "datasets_pairs_per_s": round(rate),
        "datasets_disk_mb": size >> 20,
    }  # fmt: skip


STEPS = {
    "prepare": prepare,
    "open": open_,
    "workers": workers,
    "datasets_prepare": datasets_prepare,
    "datasets_open": datasets_open,
}

if __name__ == "__main__":
    main()
