"""When a group is settled, and which members are cut off by that.

A policy sees how far the group is and nothing else; a new one is a class with these
methods.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Protocol

import msgspec

from rollscope.runner.checks import check, is_number
from rollscope.runner.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["GroupPolicy", "Progress", "after", "all_ended", "at_least", "first"]


class Progress(msgspec.Struct, frozen=True):
    """How far a group is; times are the runner's clock."""

    now_ns: int
    ok: int
    """Members that ended `ok`."""
    run_ns: Sequence[int]
    """How long each member that has ended ran."""
    first_start_ns: int | None
    deadline_ns: int | None
    """When the group's time is over; moves on while no member has started."""


class GroupPolicy(Protocol):
    """Decides when a group is settled although members still run."""

    @property
    def count(self) -> int | None:
        """How many good members it waits for; None for all."""

    @property
    def keeps(self) -> int | None:
        """How many good members it keeps, the first ones; None for all."""

    def cuts(self, seen: Progress) -> Reason | None:
        """Say why the members that still run are to be ended; None lets them run."""

    def looks_again_ns(self, seen: Progress) -> int | None:
        """Say when to ask again though no member has ended."""


class _AllEnded(msgspec.Struct, frozen=True):
    count: int | None = None
    keeps: int | None = None

    def cuts(self, seen: Progress) -> Reason | None:
        return None

    def looks_again_ns(self, seen: Progress) -> int | None:
        return None


class _AtLeast(msgspec.Struct, frozen=True):
    count: int
    keeps: int | None = None

    def cuts(self, seen: Progress) -> Reason | None:
        is_over = seen.deadline_ns is not None and seen.now_ns >= seen.deadline_ns
        return Reason.GROUP_SETTLED if is_over and seen.ok >= self.count else None

    def looks_again_ns(self, seen: Progress) -> int | None:
        is_ahead = seen.deadline_ns is not None and seen.now_ns < seen.deadline_ns
        return seen.deadline_ns if is_ahead else None


class _First(msgspec.Struct, frozen=True):
    count: int

    @property
    def keeps(self) -> int:
        return self.count

    def cuts(self, seen: Progress) -> Reason | None:
        return Reason.GROUP_SETTLED if seen.ok >= self.count else None

    def looks_again_ns(self, seen: Progress) -> int | None:
        return None


class _After(msgspec.Struct, frozen=True):
    count: int
    multiple: float
    keeps: int | None = None

    def cuts(self, seen: Progress) -> Reason | None:
        limit_ns = self._limit_ns(seen)
        return Reason.STRAGGLER if limit_ns is not None and seen.now_ns > limit_ns else None

    def looks_again_ns(self, seen: Progress) -> int | None:
        limit_ns = self._limit_ns(seen)
        return None if limit_ns is None else limit_ns + 1

    def _limit_ns(self, seen: Progress) -> int | None:
        if seen.ok < self.count or seen.first_start_ns is None:
            return None
        return seen.first_start_ns + int(self.multiple * median(seen.run_ns))


def all_ended() -> GroupPolicy:
    """Settle when every member has ended."""
    return _AllEnded()


def at_least(count: int) -> GroupPolicy:
    """Settle when all have ended, or once the deadline has passed with `count` good ones."""
    return _AtLeast(count)


def first(count: int) -> GroupPolicy:
    """Settle with the `count`-th good member; the first `count` are kept."""
    return _First(count)


def after(count: int, *, multiple: float) -> GroupPolicy:
    """Settle without stragglers.

    Args:
        count: How many good members there must be first.
        multiple: The group ends once it has run longer than so many times the median run time of
            the members that have ended.

    Raises:
        SettingError: This is no such number.
    """
    is_right = is_number(multiple) and 0 <= multiple < math.inf
    check("multiple", multiple, "a number from 0 on", is_right=is_right)
    return _After(count, multiple)
