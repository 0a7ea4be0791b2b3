"""What a beam search remembers: where each beam came from, and the best finished hypotheses."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hotloop.decoding.hypothesis import Hypothesis


class History:
    """The tokens of all beams as a tree: each step notes tokens and parents, and no beam's past is ever copied.

    Args:
        sentences: B, all that the search began with.
    """

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences
        self._rows: list[Tensor] = []
        self._beams: list[Sequence[Tensor]] = []

    def add(self, row: Tensor, *beams: Tensor) -> None:
        """One step: for sentences ``row`` (N,), the parent of each beam, its token, and more where wanted, (N, K)."""
        self._rows.append(row)
        self._beams.append(beams)

    def paths(self, beam: np.ndarray, length: np.ndarray) -> list[np.ndarray]:
        """For beams (B, n) after ``length`` (B, n) steps, what ``add`` was given but parents: (B, n, longest) each."""
        steps = int(length.max(initial=0))
        counts = [len(row) for row in self._rows[:steps]]
        found = [np.zeros((*beam.shape, steps), dtype=np.int64) for _ in (self._beams[0][1:] if self._beams else ())]
        if steps == 0:
            return found
        # One transfer for all steps.
        rows = np.split(torch.cat(self._rows[:steps]).cpu().numpy(), np.cumsum(counts)[:-1])
        kinds = [
            np.split(torch.cat(kind).cpu().numpy(), np.cumsum(counts)[:-1])
            for kind in zip(*self._beams[:steps], strict=True)
        ]
        at = np.zeros(self.sentences, dtype=np.int64)  # where a sentence stood in the step's batch
        for step in reversed(range(steps)):
            at[rows[step]] = np.arange(counts[step])
            sentence, place = np.nonzero(length > step)
            there = at[sentence], beam[sentence, place]
            for path, kind in zip(found, kinds[1:], strict=True):
                path[sentence, place, step] = kind[step][there]
            beam[sentence, place] = kinds[0][step][there]
        return found


@dataclass(frozen=True)
class Ranking:
    """Hypotheses for each of B sentences, best first; a score of -inf marks an empty place."""

    score: Tensor  # (B, n), normalised
    log_probability: Tensor  # (B, n)
    length: Tensor  # (B, n), tokens without EOS
    beam: Tensor  # (B, n), that had these tokens after `length` steps
    finished: Tensor  # (B, n) bool

    @staticmethod
    def empty(sentences: int, places: int, device: torch.device) -> "Ranking":
        nothing = torch.full((sentences, places), -torch.inf, dtype=torch.float32, device=device)
        zero = torch.zeros(sentences, places, dtype=torch.int64, device=device)
        return Ranking(nothing, nothing, zero, zero, zero.bool())

    def join(self, other: "Ranking") -> "Ranking":
        return Ranking(*(torch.cat(pair, dim=1) for pair in zip(self._all(), other._all(), strict=True)))

    def best(self, count: int) -> "Ranking":
        return self._take(self.score.sort(dim=1, descending=True, stable=True).indices[:, :count])

    def packed(self, count: int) -> "Ranking":
        """The first ``count`` that are not empty places, in the order they are in."""
        empty = (self.score == -torch.inf).to(torch.int8)
        return self._take(empty.sort(dim=1, stable=True).indices[:, :count])

    def keep(self, rows: Tensor) -> "Ranking":
        return Ranking(*(tensor[rows] for tensor in self._all()))

    def put(self, rows: Tensor, other: "Ranking") -> "Ranking":
        """This with ``rows`` (N,) taken from ``other``."""
        return Ranking(*(mine.index_copy(0, rows, its) for mine, its in zip(self._all(), other._all(), strict=True)))

    def hypotheses(self, history: History) -> list[list[Hypothesis]]:
        """Those of each sentence, best first; where all places are empty, an empty one that was cut at once."""
        beam, length = self.beam.cpu().numpy(), self.length.cpu().numpy()
        paths = [path.tolist() for path in history.paths(beam.copy(), length)]
        numbers = [tensor.tolist() for tensor in (self.score, self.log_probability, self.length, self.finished)]
        found: list[list[Hypothesis]] = []
        for sentence, columns in enumerate(zip(*numbers, strict=True)):
            found.append([])
            for place, (score, log_probability, steps, finished) in enumerate(zip(*columns, strict=True)):
                if score != -torch.inf:
                    tokens, *more = (path[sentence][place][:steps] for path in paths) if paths else ([],)
                    found[-1].append(Hypothesis(tokens, score, log_probability, finished, *more))
            if not found[-1]:
                found[-1].append(Hypothesis([], -math.inf, -math.inf, False, *([] for _ in paths[1:])))
        return found

    def _all(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.score, self.log_probability, self.length, self.beam, self.finished

    def _take(self, places: Tensor) -> "Ranking":
        return Ranking(*(tensor.gather(1, places) for tensor in self._all()))
