"""Groups of samples that are compared with each other: which teach nothing, which wait for one.

A group is what the `group` of its sessions names, else their task, within one step. Of a sample
that was tried several times only the last try is a member.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import pstdev

import msgspec

from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow

__all__ = ["GroupLine", "GroupSummary", "judge_groups"]


class GroupLine(msgspec.Struct, kw_only=True):
    """One group."""

    group: str
    task_key: str | None
    step: int | None
    members: int
    tries: int
    """Members and earlier tries of them."""
    rewarded: int
    """Members that have a reward."""
    mean_reward: float | None
    spread: float | None
    """The standard deviation of the rewards."""
    is_equal: bool
    """Whether all members have the same reward, so that none is better than another."""
    is_incomplete: bool
    """Whether a member has no reward, or there are fewer members than usual."""
    median_ns: int | None
    """Of the members that were measured."""
    slowest_ns: int | None
    ratio: float | None
    """The slowest against the median; None with fewer than two."""
    session_id: int
    """The slowest member."""


class GroupSummary(msgspec.Struct, kw_only=True):
    """Groups, and how many of which sort."""

    groups: list[GroupLine]
    usual_members: int
    """How many members most groups have."""
    equal: int
    incomplete: int
    equal_share: float
    """Of the groups that are complete."""
    ratio_p50: float | None


def judge_groups(sessions: Iterable[SessionRow], now_ns: int) -> GroupSummary:
    """Look at each group of some sessions; those that belong to none are left out.

    Groups come by how long the slowest makes the others wait, the longest first.
    """
    tries: dict[tuple[str, int | None], list[SessionRow]] = {}
    for session in sessions:
        key = session.group or session.task_key
        if key is not None:
            tries.setdefault((key, session.charged_step), []).append(session)
    members = {key: _last_tries(group) for key, group in tries.items()}
    sizes = Counter(len(group) for group in members.values())
    usual = max(sizes, key=lambda size: (sizes[size], size), default=0)
    lines = [
        _line(key, group, len(tries[key]), usual, now_ns)
        for key, group in members.items()
        if len(group) > 1 or usual > 1
    ]
    lines.sort(key=lambda line: (-(line.ratio or 0.0), line.group, line.step or 0))
    complete = [line for line in lines if not line.is_incomplete]
    ratios = sorted(line.ratio for line in lines if line.ratio is not None)
    return GroupSummary(
        groups=lines,
        usual_members=usual,
        equal=sum(line.is_equal for line in lines),
        incomplete=len(lines) - len(complete),
        equal_share=sum(line.is_equal for line in complete) / len(complete) if complete else 0.0,
        ratio_p50=ratios[(len(ratios) + 1) // 2 - 1] if ratios else None,
    )


def _last_tries(group: Sequence[SessionRow]) -> list[SessionRow]:
    last: dict[object, SessionRow] = {}
    for one in group:
        # A session that does not say which sample it is stands for itself.
        key: object = ("alone", one.span_id) if one.sample is None else (one.task_key, one.sample)
        known = last.get(key)
        if known is None or (one.attempt, one.start_ns) > (known.attempt, known.start_ns):
            last[key] = one
    return list(last.values())


def _line(
    key: tuple[str, int | None], group: Sequence[SessionRow], tries: int, usual: int, now_ns: int
) -> GroupLine:
    rewards = [one.reward for one in group if one.reward is not None]
    lengths = [one.end_ns - one.start_ns for one in group if one.end_ns and one.is_measured]
    middle_ns = median(lengths) if lengths else None
    slowest_ns = max(lengths) if lengths else None
    slowest = max(group, key=lambda one: (_ran(one, now_ns), one.span_id))
    has_ratio = len(lengths) > 1 and middle_ns and slowest_ns is not None
    return GroupLine(
        group=key[0],
        task_key=group[0].task_key,
        step=key[1],
        members=len(group),
        tries=tries,
        rewarded=len(rewards),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        spread=pstdev(rewards) if rewards else None,
        is_equal=len(rewards) == len(group) > 1 and len(set(rewards)) == 1,
        is_incomplete=len(rewards) < len(group) or len(group) < usual,
        median_ns=middle_ns,
        slowest_ns=slowest_ns,
        ratio=slowest_ns / middle_ns if has_ratio and slowest_ns and middle_ns else None,
        session_id=slowest.span_id,
    )


def _ran(session: SessionRow, now_ns: int) -> int:
    return (now_ns if session.end_ns is None else session.end_ns) - session.start_ns
