"""Scheduled sampling: in training the decoder is fed some words of its own instead of the reference's.

Which places are the model's own is decided by a coin a word (Bengio et al. 2015). A choice of words has no gradient,
so both paths find the words first, without gradient, and train by one ordinary pass over them.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from hotloop.models.teacher_forcing import TeacherForcing

Path = Literal["two_pass", "stepwise"]
PATHS: tuple[str, ...] = get_args(Path)


def decoder_inputs(model: Any, batch: Any, *, share: float, path: Path = "two_pass", chunk: int = 0) -> Tensor:
    """What the decoder is fed: (B, T), the reference with some words replaced by the model's likeliest.

    BOS and what stands behind a row's end stay. With a share of 1 this is the reference itself, and the model is
    not asked. Coins are drawn on the CPU, from PyTorch's generator.

    Args:
        model: a Translator, in whatever mode it is trained in: dropout acts on its words too.
        batch: a `Batch` of B pairs.
        share: of the places that keep the reference's word, from 0 to 1.
        path: ``"two_pass"`` reads the whole reference once, all steps at once, and takes the word after each step
            (Mihaylova & Martins 2019; Duckworth et al. 2019): own words follow reference words. ``"stepwise"`` goes
            word by word: own words follow what was fed before them, own or not.
        chunk: project that many words at a time where two passes project many; 0 = all.
    """
    reference = batch.target[:, :-1]
    if share == 1.0:
        return reference
    own = own_places(batch.target_length - 1, reference.shape[1], share)
    with torch.no_grad():
        find = _after_own_words if path == "stepwise" else _after_the_reference
        fed = find(model, batch, own, chunk)
    # Autocast keeps weights that it has cast. Until late in 2025 PyTorch handed those of a pass without gradient to
    # the next pass, whose gradients were then lost.
    torch.clear_autocast_cache()
    return fed


def own_places(length: Tensor, width: int, share: float) -> Tensor:
    """(B, T) bool on the CPU: True where the model's own word is fed; never at BOS or behind a row's end.

    Args:
        length: (B,) words of each row, BOS counted, on the CPU.
        width: T.
        share: of the places that are False, on average.
    """
    own = torch.rand(len(length), width) >= share
    own[:, 0] = False
    return own & (torch.arange(width) < length[:, None])


def _after_the_reference(model: Any, batch: Any, own: Tensor, chunk: int) -> Tensor:
    reference = batch.target[:, :-1]
    hidden = model(batch.source, batch.source_length, reference, batch.target_length - 1).flatten(0, 1)
    places = own.flatten().nonzero()[:, 0].to(hidden.device, non_blocking=True)
    # The word at a place is what the model says at the place before it, which is in the same row: none is BOS's.
    before = hidden.index_select(0, places - 1).split(chunk or max(1, len(places)))
    words = torch.cat([model.project(part).argmax(-1) for part in before])
    return reference.flatten().index_copy(0, places, words).view_as(reference)


def _after_own_words(model: Any, batch: Any, own: Tensor, chunk: int) -> Tensor:
    reference, own = batch.target[:, :-1], own.to(batch.target.device, non_blocking=True)
    state = model.start(batch.source, batch.source_length)
    fed = [reference[:, 0]]
    for step in range(1, reference.shape[1]):
        logits, state = model.step(fed[-1], state)
        fed.append(torch.where(own[:, step], logits.argmax(-1), reference[:, step]))
    return torch.stack(fed, dim=1)


def slow_paths(model: Any, path: str) -> dict[str, str]:
    """What makes this model's training steps slower than they could be, each with the option that asks for it.

    Args:
        model: any; {} of one that is fed no words.
        path: see `decoder_inputs`.
    """
    found = {}
    if getattr(model, "decoding", None) == "stepwise":
        found["decoder"] = "word by word, because model.decoding=stepwise: slow, for comparison only"
    elif getattr(model, "input_feeding", False):
        found["decoder"] = "word by word, because model.input_feeding=true: slower, on a CPU core 1.1 to 1.2 × the step"
    teacher_forcing = TeacherForcing.from_option(getattr(model, "teacher_forcing", 1.0))
    if not teacher_forcing.always:
        how, cost = {
            "two_pass": ("by a first pass", "1.2 to 1.3"),
            "stepwise": ("word by word before the pass", "1.5 to 1.7"),
        }[path]
        found["own words"] = (
            f"because model.teacher_forcing={teacher_forcing}: found {how} (task.scheduled_sampling={path}), "
            f"{cost} × the step on a CPU core"
        )
    return found
