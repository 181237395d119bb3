"""How a reward can fail: the error that callers see."""

from typing import Literal, TypeAlias

from rollscope.errors import RollscopeError

__all__ = ["Reason", "RewardFailed"]

Reason: TypeAlias = Literal["reward_timeout", "reward_error"]


class RewardFailed(RollscopeError):
    """A reward could not be had, after every try that was allowed."""

    def __init__(self, reason: Reason, attempts: int, detail: str) -> None:
        """Keep why the last try failed, and how many there were.

        Args:
            reason: `reward_timeout` if the last try took too long, else `reward_error`.
            attempts: How many tries were made.
            detail: What went wrong, with the traceback of the function if it raised.
        """
        super().__init__(reason, attempts, detail)
        self.reason = reason
        self.attempts = attempts
        self.detail = detail

    def __str__(self) -> str:
        """Say it in a sentence."""
        tries = "1 try" if self.attempts == 1 else f"{self.attempts} tries"
        return f"{self.reason} after {tries}: {self.detail}"
