"""What the published image regressor costs in training, and what each change buys.

    python benchmarks/inception_cost.py [--quick] [--json FILE] [--dir FOLDER] [--epochs N] [KEY=VALUE …]

The published model in the published loop (each picture opened, decoded and resized in each epoch, in the training
process; float32; Adam; `loss.item()` in each step) against the configuration that hotloop recommends, as Hydra
composes it from conf/ with KEY=VALUE on top, and the changes between them one by one. Pictures: drawn gauges as JPEG
files, or your own folder. All variants see pictures of one size in batches of one size, and learn standardised targets.
They take turns; each figure is the median of its rounds. Memory is what a step takes at its peak beside the weights.

With --epochs, both are then trained from scratch, in turns, until the published one has had N epochs; the recommended
one besides for N epochs alone. Errors are those of the last weights on validation pictures that neither has trained
on, in units of the target.
"""

import argparse
import ctypes
import itertools
import json
import logging
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from image_feed import PlainPictures
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from hotloop import run
from hotloop.checks import model_facts
from hotloop.config import build
from hotloop.data.images.gauges import Gauges
from hotloop.data.images.writing import write_folder
from hotloop.errors import UserError
from hotloop.metrics.regression import score_regression

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = "published model, published loop"
GAP = "+ averages instead of the flat layer"
MODEL = "+ stem and downsampling: recommended model"
CHANNELS_LAST = "+ channels_last"
CACHE = "+ decoded once, normalised by the batch"
RECOMMENDED = "recommended configuration (Lightning)"
HALF = "+ precision=bf16-mixed"
GOAL = 10
LEAST_SECONDS = 2.0  # of a variant's turn, where its steps are short

Pairs = Iterator[tuple[Tensor, Tensor]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller pictures, fewer rounds; says little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--dir", type=Path, metavar="FOLDER", help="your own pictures (default: drawn gauges)")
    parser.add_argument("--targets", default="targets.csv", help="their table (default targets.csv)")
    parser.add_argument("--size", type=int, help="pixels a side that the models see (default 224, with --quick 64)")
    parser.add_argument("--batch-size", type=int, default=8, help="pictures (default 8; 32 published ones take 12 GB)")
    parser.add_argument("--rounds", type=int, help="default 3, with --quick 2")
    parser.add_argument("--epochs", type=int, default=0, metavar="N", help="train the published model so long (hours)")
    parser.add_argument("--recommended-epochs", type=int, metavar="N", help="meanwhile (default: for equal time)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of the recommended configuration")
    options = parser.parse_args()
    options.size = options.size or (64 if options.quick else 224)
    options.rounds = options.rounds or (2 if options.quick else 3)
    torch.set_num_threads(options.threads)
    run.quieten_libraries()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        with tempfile.TemporaryDirectory() as work:
            report = measured(options, Path(work))
    except (UserError, HydraException, OmegaConfBaseException) as error:
        raise SystemExit(f"error: {' '.join(str(error).split())}") from error
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def measured(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """The figures, printed on the way."""
    folder = options.dir or work / "gauges"
    if options.dir is None:
        train, valid = (80, 20) if options.quick else (320, 80)
        write_folder(Gauges(count=train, valid=valid, test=0, size=options.size), folder, ending="jpg")
    bench = Bench(options, folder, work)
    facts = bench.data.facts
    print(
        f"CPU {platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}; {len(bench.train)} "
        f"pictures of {folder.name}, {facts['height']}×{facts['width']}, batch {options.batch_size}; "
        f"medians of {options.rounds} rounds"
    )
    rows = compare(bench.variants(), options.rounds)
    print(f"\n{'':<46}{'parameters':>11}{'ms a step':>11}{'pictures/s':>11}{'ratio':>8}{'goal':>7}{'peak MB':>9}")
    for name, row in rows.items():
        row["pictures_per_s"] = options.batch_size / row["seconds_a_step"]
        row["ratio"] = row["pictures_per_s"] / rows[PUBLISHED]["pictures_per_s"]
        goal = f">= {GOAL}" if name == RECOMMENDED else ""
        memory = "–" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}"
        print(
            f"{name:<46}{row['parameters']:>11,}{row['seconds_a_step'] * 1e3:>11,.0f}{row['pictures_per_s']:>11.2f}"
            f"{row['ratio']:>8.1f}{goal:>7}{memory:>9}"
        )
    print(f"{'decoding for the cache, once':<46}{bench.data.summary()['cache']['seconds']:>22.1f} s")
    report = {"pictures": len(bench.train), **facts, "batch_size": options.batch_size, "speed": rows}
    if options.epochs:
        epochs = options.recommended_epochs or max(1, round(options.epochs * rows[RECOMMENDED]["ratio"]))
        report["training"] = train_both(bench, options.epochs, epochs)
    return report


# ---- the two set-ups -----------------------------------------------------------------------------------


class Bench:
    """The recommended configuration, its data, and the same pictures for the published loop."""

    def __init__(self, options: argparse.Namespace, folder: Path, work: Path) -> None:
        self.options, self.folder, self.work = options, folder, work
        self.published = self._composed("experiment=inception_published")["model"]
        self.settings = self._composed(*options.overrides)
        self.data = run.build_data(self.settings)
        self.data.prepare_data()
        self.data.setup("fit")
        facts = self.data.for_task()
        self.names, self.mean = facts["target_names"], torch.tensor(facts["target_mean"])
        self.deviation = torch.tensor(facts["target_std"])
        self.train, self.valid = self._plain("train"), self._plain("valid")

    def _composed(self, *overrides: str) -> dict[str, Any]:
        fixed = (
            "trainer.accelerator=cpu", "trainer.devices=1", "callbacks=none", "logger=none", "name=benchmark", "seed=0",
        )  # fmt: skip
        given = (f"data.size={self.options.size}", f"data.batch_size={self.options.batch_size}", "data.test_size=0")
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            config = compose("train", overrides=["model=inception", "data=images", *given, *fixed, *overrides])
        config.data.dir, config.data.targets = str(self.folder.resolve()), self.options.targets
        if self.options.dir is None:
            config.data.source.split_column = "split"
        config.data.cache_dir, config.run_dir = str(self.work / "cache"), str(self.work)
        return run.checked(config)

    def _plain(self, split: str) -> PlainPictures:
        chosen = self.data.dataset(split)
        if chosen is None:
            raise UserError(f"there are no pictures in the {split} split")
        paths = [self.folder / chosen.name(number) for number in range(len(chosen))]
        facts = self.data.facts
        if facts["channels"] != 3:
            raise UserError("the published loop reads RGB pictures: leave data.channels=rgb")
        targets = self.standardised(torch.from_numpy(chosen.targets))
        return PlainPictures(paths, targets, (facts["height"], facts["width"]))

    def standardised(self, targets: Tensor) -> Tensor:
        return (targets - self.mean) / self.deviation

    def model(self, node: dict[str, Any], **changes: Any) -> nn.Module:
        """A new model."""
        torch.manual_seed(0)
        return build({**node, **changes}, "model", **model_facts(self.settings, self.data.facts))

    def plain_batches(self) -> DataLoader[Any]:
        return DataLoader(self.train, batch_size=self.options.batch_size, shuffle=True)

    def cached_batches(self, task: Any) -> Pairs:
        """Endless batches of hotloop's own loader."""
        for batch in endless(self.data.train_dataloader()):
            yield task.normalised(batch.images), self.standardised(batch.targets)

    def recommended(self, *overrides: str) -> "Recommended":
        settings = self._composed(*self.options.overrides, *overrides) if overrides else self.settings
        return Recommended(settings, self.data, self.model(settings["model"]))

    def published_loop(self) -> "PlainLoop":
        return PlainLoop(self.model(self.published), endless(self.plain_batches()))

    def variants(self) -> dict[str, "PlainLoop | Recommended"]:
        """From the published one to the recommended one."""
        gap = self.model(self.published, head="gap", grid=1)
        plain, last, cached = (self.model(self.settings["model"]) for _ in range(3))
        found: dict[str, PlainLoop | Recommended] = {
            PUBLISHED: self.published_loop(),
            GAP: PlainLoop(gap, endless(self.plain_batches())),
            MODEL: PlainLoop(plain, endless(self.plain_batches())),
            CHANNELS_LAST: PlainLoop(last, channels_last(last, endless(self.plain_batches()))),
            CACHE: PlainLoop(cached, self.cached_batches(run.build_task(self.settings, self.data, cached))),
            RECOMMENDED: self.recommended(),
        }
        if has_bfloat16():
            found[HALF] = self.recommended("precision=bf16-mixed")
        return found


class PlainLoop:
    """A training loop as usually first written.

    Args:
        model: takes pictures (B, C, H, W).
        batches: endless; pictures and standardised targets (B, T).
    """

    def __init__(self, model: nn.Module, batches: Pairs) -> None:
        self.model, self.batches, self.total = model, batches, 0.0
        self.optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train(self, steps: int) -> float:
        """Seconds of `steps` training steps."""
        self.model.train()
        start = time.perf_counter()
        for images, targets in itertools.islice(self.batches, steps):
            loss = F.mse_loss(self.model(images), targets)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.total += loss.item()
        return time.perf_counter() - start


class Recommended:
    """Model, task and Trainer of a configuration."""

    def __init__(self, settings: dict[str, Any], data: Any, model: nn.Module) -> None:
        self.settings, self.data, self.model = settings, data, model
        self.task = run.build_task(settings, data, model)
        self.batches_an_epoch = len(data.train_dataloader())

    def train(self, steps: int) -> float:
        """Seconds of `steps` training steps, by the mean over as many as an epoch has where it has fewer."""
        whole = min(steps, self.batches_an_epoch)
        return self.fit(Clock(), max_epochs=1, limit_train_batches=whole) * steps / whole

    def fit(self, clock: "Clock", **limits: int) -> float:
        """Seconds of training with a new Trainer and optimiser; starting them does not count."""
        self.trainer(**limits, limit_val_batches=0, callbacks=[clock]).fit(self.task, datamodule=self.data)
        return clock.seconds

    def trainer(self, *, callbacks: list[pl.Callback], **changes: Any) -> pl.Trainer:
        return run.build_trainer({**self.settings, "trainer": self.settings["trainer"] | changes}, callbacks=callbacks)

    def errors(self) -> dict[str, float]:
        """Of the validation pictures."""
        trainer = self.trainer(callbacks=[])
        trainer.validate(self.task, datamodule=self.data, verbose=False)
        return {name.removeprefix("val/"): float(value) for name, value in trainer.callback_metrics.items()}


class Clock(pl.Callback):
    """Time of training epochs, loading included.

    Args:
        after_step: called with the number of steps done; its time does not count.
    """

    def __init__(self, after_step: Callable[[int], None] | None = None) -> None:
        self.seconds, self._after_step, self._since, self._steps = 0.0, after_step, 0.0, 0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._since = time.perf_counter()

    def on_train_batch_end(self, *_: Any) -> None:
        if self._after_step is not None:
            start = time.perf_counter()
            self._steps += 1
            self._after_step(self._steps)
            self._since += time.perf_counter() - start

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.seconds += time.perf_counter() - self._since


def endless(loader: DataLoader[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def channels_last(model: nn.Module, batches: Pairs) -> Pairs:
    model.to(memory_format=torch.channels_last)
    for images, targets in batches:
        yield images.contiguous(memory_format=torch.channels_last), targets


def has_bfloat16() -> bool:
    """Whether the CPU computes with bfloat16; elsewhere it is several times slower than float32."""
    with suppress(OSError):
        flags = Path("/proc/cpuinfo").read_text().split()
        return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(flags)
    return False


# ---- speed ---------------------------------------------------------------------------------------------


def compare(variants: dict[str, PlainLoop | Recommended], rounds: int) -> dict[str, dict[str, Any]]:
    """Median seconds of a training step and most memory of each variant; the first turn warms up."""
    steps = {name: max(1, int(LEAST_SECONDS / variant.train(1))) for name, variant in variants.items()}
    for name, variant in variants.items():
        if steps[name] > 1:  # the first step was a slow one
            steps[name] = max(1, int(LEAST_SECONDS / (variant.train(steps[name]) / steps[name])))
    times: dict[str, list[float]] = {name: [] for name in variants}
    peaks: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            before = resident_mb()
            times[name].append(variants[name].train(steps[name]) / steps[name])
            if before is not None:
                peaks[name].append(status_mb("VmHWM") - before)
    return {
        name: {
            "parameters": sum(p.numel() for p in variant.model.parameters()),
            "seconds_a_step": statistics.median(times[name]),
            "steps_a_round": steps[name],
            "peak_mb": max(peaks[name]) if peaks[name] else None,
        }
        for name, variant in variants.items()
    }


def resident_mb() -> float | None:
    """Memory of this process now, MB, after which its peak (VmHWM) counts anew; None where Linux is not there."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # what earlier turns freed
        Path("/proc/self/clear_refs").write_text("5")
        return status_mb("VmRSS")
    except (OSError, AttributeError):
        return None


def status_mb(key: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[key].split()[0]) / 1024


# ---- errors --------------------------------------------------------------------------------------------


def train_both(bench: Bench, epochs: int, recommended_epochs: int) -> dict[str, dict[str, float]]:
    """Errors on the validation pictures after training, printed.

    Args:
        bench: see there.
        epochs: of the published model.
        recommended_epochs: of the recommended one meanwhile, in turns.
    """
    published, short, long = bench.published_loop(), bench.recommended(), bench.recommended()
    steps, others = epochs * len(bench.plain_batches()), recommended_epochs * long.batches_an_epoch
    done, seconds = 0, 0.0

    def turn(other: int) -> None:
        """The published model's share of the work, when the other one has made `other` steps."""
        nonlocal done, seconds
        while done * others < other * steps:
            seconds += published.train(1)
            done += 1
            if done % 10 == 0:
                print(f"published: step {done} of {steps}, {seconds:,.0f} s", file=sys.stderr, flush=True)

    alone = short.fit(Clock(), max_epochs=epochs)
    together = long.fit(Clock(turn), max_epochs=recommended_epochs)
    rows = {
        f"published, epochs: {epochs}": {"seconds": seconds, **plain_errors(bench, published.model)},
        f"recommended, epochs: {epochs}": {"seconds": alone, **short.errors()},
        f"recommended, meanwhile, epochs: {recommended_epochs}": {"seconds": together, **long.errors()},
    }
    print(f"\n{'after training':<46}{'seconds':>11}{'RMSE':>11}{'MAE':>11}")
    for name, row in rows.items():
        print(f"{name:<46}{row['seconds']:>11,.0f}{row['rmse']:>11.4g}{row['mae']:>11.4g}")
    print(f"{'the mean of the training targets':<57}{row['baseline_rmse']:>11.4g}{row['baseline_mae']:>11.4g}")
    return rows


@torch.no_grad()
def plain_errors(bench: Bench, model: nn.Module) -> dict[str, float]:
    """Of the validation pictures."""
    model.eval()
    batches = DataLoader(bench.valid, batch_size=bench.options.batch_size)
    pairs = [(model(images), targets) for images, targets in batches]
    predictions, targets = (torch.cat(column) * bench.deviation + bench.mean for column in zip(*pairs, strict=True))
    return score_regression(predictions, targets, names=bench.names, baseline=bench.mean.tolist())


if __name__ == "__main__":
    main()
