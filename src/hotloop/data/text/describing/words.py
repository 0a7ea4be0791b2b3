"""Words and how often they occur, in memory that has a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

LARGEST = 3_000_000  # different words of a side that are told apart: some 400 MB


class WordCounts:
    """Frequencies, and how the number of different words grew with the text.

    When `largest` words are known, further new ones are only counted together (`others`): the frequent words,
    which came early, stay exact; the number of different words is then "at least".
    """

    def __init__(self, *, largest: int = LARGEST) -> None:
        self.counts: Counter[str] = Counter()
        self.running, self.others = 0, 0
        self.growth: list[tuple[int, int]] = []  # (running words, different words) after each part of the text
        self._largest = largest

    def add(self, counts: Mapping[str, int]) -> None:
        """Count the next part of the text."""
        self.running += sum(counts.values())
        if len(self.counts) + len(counts) <= self._largest:
            self.counts.update(counts)
        else:
            for word, count in counts.items():
                if word in self.counts or len(self.counts) < self._largest:
                    self.counts[word] += count
                else:
                    self.others += count
        self.growth.append((self.running, len(self.counts)))

    @property
    def capped(self) -> bool:
        """Whether there were more different words than are told apart."""
        return self.others > 0

    def by_frequency(self) -> list[tuple[str, int]]:
        """Most frequent first, equal ones in the order of their letters, as a word vocabulary is made."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
