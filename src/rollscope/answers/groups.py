"""Groups of a scope: equal rewards, incomplete ones, and how long the slowest member takes."""

from collections.abc import Callable
from typing import Final

import msgspec

from rollscope.analysis.groups import GroupLine, judge_groups
from rollscope.analysis.rows import SessionRow
from rollscope.answers.chosen import scope_condition
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source, fetch
from rollscope.errors import CommandError

__all__ = ["GROUP_SORT_KEYS", "Groups", "list_groups"]

_Key = Callable[[GroupLine], float]

GROUP_SORT_KEYS: Final[dict[str, _Key]] = {
    "ratio": lambda line: line.ratio or 0.0,
    "slowest": lambda line: line.slowest_ns or 0,
    "reward": lambda line: line.mean_reward or 0.0,
    "spread": lambda line: line.spread or 0.0,
    "equal": lambda line: line.is_equal,
    "incomplete": lambda line: line.is_incomplete,
}
"""What groups can be sorted by; a minus in front turns it round."""


_COLUMNS: Final = """
    session_id AS span_id, task_key, group_key AS "group", sample, attempt, step, consumed_step,
    start_ns, end_ns, status, reward"""


class Groups(msgspec.Struct, kw_only=True):
    """Some groups, and how many there are of which sort."""

    scope: str
    groups: list[GroupLine]
    of: int
    usual_members: int
    """How many members most groups have."""
    equal: int
    """Groups whose members all have the same reward."""
    incomplete: int
    equal_share: float
    """Of the groups that are complete."""
    ratio_p50: float | None
    """The slowest member against the median one, in the median group."""


def list_groups(
    source: Source, scope: StepScope, sort: str = "-ratio", limit: int = 50, offset: int = 0
) -> Groups:
    """Look at the groups of a scope.

    Raises:
        CommandError: There is no such sort key.
    """
    key = GROUP_SORT_KEYS.get(sort.removeprefix("-"))
    if key is None:
        known = ", ".join(GROUP_SORT_KEYS)
        raise CommandError(f"cannot sort by {sort!r}; one of {known}, with - for the greatest", 2)
    found = judge_groups(_sessions(source, scope), source.now_ns)
    lines = sorted(found.groups, key=key, reverse=sort.startswith("-"))
    return Groups(
        scope=scope.text,
        groups=lines[offset : offset + limit],
        of=len(lines),
        usual_members=found.usual_members,
        equal=found.equal,
        incomplete=found.incomplete,
        equal_share=found.equal_share,
        ratio_p50=found.ratio_p50,
    )


def _sessions(source: Source, scope: StepScope) -> list[SessionRow]:
    """Give the sessions of a scope with what groups are judged by."""
    chosen = scope_condition(scope)
    sql = f"""
        SELECT {_COLUMNS} FROM sessions
        WHERE (group_key IS NOT NULL OR task_key IS NOT NULL) AND {chosen.where}
        ORDER BY start_ns, session_id"""
    return fetch(source, SessionRow, sql, **chosen.values)
