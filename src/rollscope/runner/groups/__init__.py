"""Tasks that share a prompt and are settled together."""

from rollscope.runner.groups.bias import GroupStats
from rollscope.runner.groups.group import Group, MemberOptions
from rollscope.runner.groups.grouping import Grouping
from rollscope.runner.groups.outcome import GroupOutcome
from rollscope.runner.groups.policies import (
    GroupPolicy,
    Progress,
    after,
    all_ended,
    at_least,
    first,
)

__all__ = [
    "Group",
    "GroupOutcome",
    "GroupPolicy",
    "GroupStats",
    "Grouping",
    "MemberOptions",
    "Progress",
    "after",
    "all_ended",
    "at_least",
    "first",
]
