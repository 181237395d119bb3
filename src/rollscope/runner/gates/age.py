"""How old an outcome is, and what is done about it: the age policy, as pure functions.

The staleness gate bounds how many items are out, not the age of one: a straggler can be overtaken
by items that started after it. So age is judged again when an outcome is delivered.
"""

from collections.abc import Iterable
from enum import StrEnum

__all__ = ["AgePolicy", "age_of", "judge_age", "oldest_useful_version"]


class AgePolicy(StrEnum):
    """What happens to an outcome that is too old at delivery."""

    ACCEPT = "accept"
    """Deliver it as if nothing were."""
    MARK = "mark"
    """Deliver it with its age pointed out."""
    DROP = "drop"
    """Deliver it as stale, without being trained on."""
    REQUEUE = "requeue"
    """Run the task again."""


def age_of(version_now: int | None, segment_versions: Iterable[int | None]) -> int | None:
    """Tell how many versions behind the oldest segment of an outcome is.

    Args:
        version_now: The version at delivery, so that time in the outbox counts.
        segment_versions: The version at the start of each segment; None or below zero where it
            is not known, as for tokens of a prompt.

    Returns:
        The age; None if a version needed for it is not known.
    """
    known = [version for version in segment_versions if version is not None and version >= 0]
    return version_now - min(known) if version_now is not None and known else None


def judge_age(
    age: int | None, max_staleness: int, policy: AgePolicy = AgePolicy.ACCEPT
) -> AgePolicy:
    """Decide about one outcome: the policy if it is too old, else `ACCEPT`.

    An outcome of unknown age is accepted: nothing speaks against it.
    """
    return policy if age is not None and age > max_staleness else AgePolicy.ACCEPT


def oldest_useful_version(version: int, max_staleness: int) -> int:
    """Give the version below which work is too old once `version` is in force.

    What is to be cut before an update is everything that started on an older one.
    """
    return version - max_staleness
