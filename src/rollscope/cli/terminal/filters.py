"""What is said of a filter that cannot be read."""

from rollscope.analysis.filters import FilterError
from rollscope.errors import CommandError
from rollscope.screens.tables import clean

__all__ = ["filter_trouble"]


def filter_trouble(text: str, error: FilterError) -> CommandError:
    """Turn an unreadable filter into an error that points at the character."""
    before = clean(text[: error.position])
    return CommandError(f"--filter: {error}\n  {clean(text)}\n  {' ' * len(before)}^", 2)
