"""The lanes of a timeline: numbers that stay, labels, groups, and the order to show them in."""

import re
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.reading import Words

__all__ = ["GroupRange", "LaneColumns", "Lanes"]

_DIGITS: Final = re.compile(r"(\d+)")


class GroupRange(msgspec.Struct, frozen=True):
    """A group and the positions of its lanes."""

    label: str
    first_lane: int
    lanes: int


class LaneColumns(msgspec.Struct):
    """Lanes as they are kept: the number of each is its place."""

    groups: list[str]
    labels: list[str]
    group: npt.NDArray[np.uint32]
    label: npt.NDArray[np.uint32]
    number: npt.NDArray[np.int32]
    has_sessions: npt.NDArray[np.bool_]


class Lanes:
    """Lanes in the order in which they came; `order` is the one in which they are shown."""

    def __init__(self) -> None:
        self.groups = Words()
        self._labels = Words()
        self.group = np.zeros(0, np.uint32)
        self._label = np.zeros(0, np.uint32)
        self._number = np.zeros(0, np.int32)
        self.has_sessions = np.zeros(0, bool)
        """Lanes that sessions stand on."""
        self._order: npt.NDArray[np.int64] | None = None

    @classmethod
    def restored(cls, columns: LaneColumns) -> Self:
        """Give the lanes that `columns` were taken from."""
        lanes = cls()
        lanes.groups, lanes._labels = Words.known(columns.groups), Words.known(columns.labels)
        lanes.group, lanes._label = columns.group, columns.label
        lanes._number, lanes.has_sessions = columns.number, columns.has_sessions
        return lanes

    def columns(self) -> LaneColumns:
        """Give all that is known of the lanes; it stays as it is when lanes are added."""
        words = [*self.groups.words], [*self._labels.words]
        return LaneColumns(*words, self.group, self._label, self._number, self.has_sessions)

    def __len__(self) -> int:
        return len(self.group)

    def codes(self, group: str, label: str) -> tuple[int, int]:
        """Give the numbers of a group and of a label."""
        return self.groups.code_of(group), self._labels.code_of(label)

    def add(
        self,
        groups: npt.ArrayLike,
        labels: npt.ArrayLike,
        numbers: npt.ArrayLike,
        *,
        has_sessions: bool,
    ) -> npt.NDArray[np.int64]:
        """Add lanes and give their numbers."""
        first = len(self)
        self.group = np.append(self.group, np.asarray(groups, np.uint32))
        self._label = np.append(self._label, np.asarray(labels, np.uint32))
        self._number = np.append(self._number, np.asarray(numbers, np.int32))
        added = len(self.group) - first
        self.has_sessions = np.append(self.has_sessions, np.full(added, has_sessions))
        self._order = None
        return np.arange(first, first + added)

    def renumber(self) -> npt.NDArray[np.int64]:
        """Number lanes in the order in which they are shown; give the new number of each."""
        order = self.order
        self.group, self._label = self.group[order], self._label[order]
        self._number, self.has_sessions = self._number[order], self.has_sessions[order]
        self._order = np.arange(len(order))
        new = np.empty(len(order), np.int64)
        new[order] = np.arange(len(order))
        return new

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The lanes as they are shown: by group, what is outside of sessions first."""
        if self._order is None:
            group_rank, label_rank = _ranks(self.groups.words), _ranks(self._labels.words)
            self._order = np.lexsort(
                (
                    self._number,
                    label_rank[self._label],
                    self.has_sessions,
                    group_rank[self.group],
                )
            )
        return self._order

    @property
    def is_in_order(self) -> bool:
        """Whether numbers are positions."""
        order = self.order
        return bool((order == np.arange(len(order))).all())

    def label(self, lane: int) -> str:
        """Give the label of a lane."""
        text, number = self._labels.words[self._label[lane]], int(self._number[lane])
        return text if number < 0 else f"{text} {number}"

    def are_at(
        self,
        lanes: npt.NDArray[np.uint32],
        groups: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int64],
    ) -> bool:
        """Say whether lanes are of these groups, and labelled so but for their numbers."""
        return bool((self.group[lanes] == groups).all() and (self._label[lanes] == labels).all())

    def group_ranges(self) -> list[GroupRange]:
        """Give the groups in the order in which they are shown."""
        shown = self.group[self.order]
        if not len(shown):
            return []
        first = np.concatenate([[0], np.flatnonzero(shown[1:] != shown[:-1]) + 1])
        counts = np.diff(first, append=len(shown))
        return [
            GroupRange(self.groups.words[shown[low]], low, count)
            for low, count in zip(first.tolist(), counts.tolist(), strict=True)
        ]


def _ranks(words: list[str]) -> npt.NDArray[np.int64]:
    """Say which word comes where; numbers in words count as numbers."""
    order = sorted(range(len(words)), key=lambda place: _natural(words[place]))
    ranks = np.empty(len(words), np.int64)
    ranks[order] = np.arange(len(words))
    return ranks


def _natural(word: str) -> list[Any]:
    parts = _DIGITS.split(word)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]
