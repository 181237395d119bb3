"""How a group ended: one outcome, made of those of its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.runner.outcome import Outcome, Reason, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["GroupOutcome", "has_failed", "join_outcomes", "run_ns"]

_FROM_OUTSIDE: Final = frozenset({Reason.REQUESTED, Reason.CLOSED, Reason.DRAINED})
"""Somebody ended the member; that is no failing of its own."""
_FAILURES: Final = frozenset({Status.FAILED, Status.TIMEOUT, Status.STALE})


class GroupOutcome(Outcome, frozen=True, eq=False):
    """How a group ended. Its value is the list of its kept members' values."""

    members: tuple[Outcome, ...] = ()
    """Every task that was started for the group, in the order in which they ended."""
    kept: tuple[Outcome, ...] = ()
    """The good ones that the group is made of."""
    cut: tuple[Outcome, ...] = ()
    """Those ended because the group was settled."""
    replaced: tuple[Outcome, ...] = ()
    """Those that failed and had another one started in their place."""
    length_bias: float | None = None
    """Mean run time of the kept members by that of all started ones; 1.0 is no bias."""

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """The outcomes of those tasks."""
        return self.members


def has_failed(outcome: Outcome) -> bool:
    """Whether a member failed: not if it was rejected, dropped, or ended by somebody."""
    return outcome.status in _FAILURES or outcome.reason is Reason.SELF_CANCELLED


def run_ns(outcome: Outcome) -> int:
    """Give how long a task ran, without what it waited between attempts; 0 if it never did."""
    if outcome.execution_ns or outcome.started_ns is None:
        return outcome.execution_ns
    return outcome.finished_ns - outcome.started_ns


def join_outcomes(
    group_id: int,
    members: Sequence[Outcome],
    *,
    kept: Sequence[Outcome],
    replaced: Sequence[Outcome],
    cut_as: Reason | None,
    need: int,
    is_given_up: bool,
    length_bias: float | None,
) -> GroupOutcome:
    """Make the outcome of a group.

    Args:
        group_id: Its id.
        members: Outcomes of all its tasks.
        kept: Those it is made of.
        replaced: Those that others have taken the place of.
        cut_as: Why members were cut off, if any were.
        need: How many good members make a good group.
        is_given_up: It fails, however many are good.
        length_bias: As in `GroupOutcome`.
    """
    status, reason = Status.OK, Reason.ACCEPTED
    if is_given_up or len(kept) < need:
        status, reason = _why_short(members)
    is_ok = status is Status.OK
    source = kept or members
    versions = tuple(sorted({version for member in source for version in member.versions}))
    cut = tuple(one for one in members if one.reason is cut_as and not one.is_ok)
    first = members[0]
    return GroupOutcome(
        id=group_id,
        status=status,
        reason=reason,
        value=[member.value for member in kept],
        error=None if is_ok else next((one.error for one in members if one.error), None),
        detail=f"{len(kept)} good of {len(members)}, {len(cut)} cut, {len(replaced)} replaced",
        group=group_id,
        tier=first.tier,
        tags=first.tags,
        attempts=sum(member.attempts for member in members),
        submitted_ns=min(member.submitted_ns for member in members),
        admitted_ns=_earliest([member.admitted_ns for member in members]),
        started_ns=_earliest([member.started_ns for member in members]),
        finished_ns=max(member.finished_ns for member in members),
        version_start=versions[0] if versions else None,
        version_end=_latest([member.version_end for member in source]),
        versions=versions,
        execution_ns=sum(run_ns(member) for member in members),
        weight=len(members),
        members=tuple(members),
        kept=tuple(kept),
        cut=cut,
        replaced=tuple(replaced),
        length_bias=length_bias,
    )


def _why_short(members: Sequence[Outcome]) -> tuple[Status, Reason]:
    for member in members:
        if member.reason in _FROM_OUTSIDE:
            return member.status, member.reason
    if not any(member.is_ok or has_failed(member) for member in members):
        return members[0].status, members[0].reason  # nothing went wrong, nothing was good
    return Status.FAILED, Reason.GROUP_SHORT


def _earliest(times: Sequence[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _latest(versions: Sequence[int | None]) -> int | None:
    return max((version for version in versions if version is not None), default=None)
