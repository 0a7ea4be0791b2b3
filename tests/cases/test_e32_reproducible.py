"""E32: one seed, one result; the seed is in the report even when nobody set it."""

import subprocess
import sys

import pytest
import torch

from hotloop import checkpoint
from hotloop.data.images.images import ImageDataModule
from tests.conftest import ROOT
from tests.data.images.made_pictures import MadeSource


def weights(run):
    return checkpoint.read_checkpoint(run.last)["state_dict"]


def equal(one, other) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_e32_the_same_seed_gives_the_same_weights_and_another_seed_others(train_tiny):
    first, second = (train_tiny("trainer.max_epochs=2", folder=name) for name in ("first", "second"))
    other = train_tiny("trainer.max_epochs=2", "seed=2", folder="other")
    assert first.losses == second.losses and equal(weights(first), weights(second))
    assert first.losses != other.losses and not equal(weights(first), weights(other))


@pytest.mark.parametrize("workers", [1, 2])
def test_e32_workers_change_nothing(train_tiny, workers):
    alone = train_tiny(folder="alone")
    helped = train_tiny(f"data.num_workers={workers}", folder="helped")
    assert alone.losses == helped.losses and equal(weights(alone), weights(helped))


AUGMENTED = (
    "data.augment.crop=[0.6,1.0]",
    "data.augment.horizontal_flip=0.5",
    "data.augment.rotate=10",
    "data.augment.brightness=0.3",
    "data.augment.saturation=0.3",
    "data.augment.noise=0.05",
    "data.augment.extra=[{_target_:torchvision.transforms.v2.GaussianBlur,kernel_size:3}]",
    "trainer.max_epochs=2",
)


def test_e32_image_runs_repeat_themselves_whatever_the_workers(train_tiny_images):
    first, again, alone, uncached = (
        train_tiny_images(*AUGMENTED, *options, folder=name)
        for name, options in (
            ("first", ("data.num_workers=2",)),
            ("again", ("data.num_workers=2",)),
            ("alone", ("data.num_workers=0",)),
            ("uncached", ("data.num_workers=1", "data.cache=none")),
        )
    )
    for run in (again, alone, uncached):
        assert first.losses == run.losses and equal(weights(first), weights(run))
    other = train_tiny_images(*AUGMENTED, "seed=2", "data.num_workers=2", folder="other")
    assert first.losses != other.losses and not equal(weights(first), weights(other))


def test_e32_augmentation_differs_between_workers_and_between_epochs(tmp_path):
    data = ImageDataModule(
        source=SameSource(16), size=[40, 50], augment={"crop": [0.3, 1.0]}, num_workers=2, batch_size=2,
        valid_size=0, test_size=0, cache_dir=tmp_path,
    )  # fmt: skip
    data.setup()
    loader = data.train_dataloader()
    pictures = []
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        pictures += [image.numpy().tobytes() for batch in loader for image in batch.images]
    assert len(set(pictures)) == 32


class SameSource(MadeSource):
    """One picture again and again."""

    def __init__(self, count):
        super().__init__(count, shape=(40, 50))
        one = self.reader.read(0)
        self.reader.read = lambda number, at_least=None: one


def test_e32_a_seed_that_nobody_set_is_recorded_and_repeats_the_run(train_tiny):
    first = train_tiny("seed=null", folder="first")
    seed = first.report["seed"]
    assert isinstance(seed, int)
    again = train_tiny(f"seed={seed}", folder="again")
    assert first.losses == again.losses


def test_e32_vocabularies_do_not_depend_on_the_hash_seed(bitext, tmp_path):
    program = (
        "import json, sys\n"
        "from hotloop.data.text.tokenizer import TokenizerOptions, count_words, train_tokenizer\n"
        "lines = open(sys.argv[1], encoding='utf-8').read().splitlines()\n"
        "for kind, size in (('word', 30), ('bpe', 80), ('unigram', 80)):\n"
        "    options = TokenizerOptions(kind=kind, vocabulary_size=size)\n"
        "    print(json.dumps(train_tokenizer(count_words(lines), options).state()))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, str(bitext / "train.fr")],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] and outputs[0].count("\n") == 3


def test_e32_all_processes_of_a_run_have_one_seed(monkeypatch):
    from hotloop.errors import UserError
    from hotloop.run import choose_seed

    for name in ("LOCAL_RANK", "SLURM_NTASKS", "PL_GLOBAL_SEED"):
        monkeypatch.delenv(name, raising=False)
    assert choose_seed(None) != choose_seed(None)
    monkeypatch.setenv("SLURM_NTASKS", "2")
    with pytest.raises(UserError, match="all need the same"):
        choose_seed(None)
    monkeypatch.delenv("SLURM_NTASKS")
    monkeypatch.setenv("LOCAL_RANK", "1")  # torchrun
    with pytest.raises(UserError, match="all need the same"):
        choose_seed(None)
    monkeypatch.setenv("PL_GLOBAL_SEED", "77")  # Lightning's child of a process that chose 77
    assert choose_seed(None) == 77 and choose_seed(5) == 5
