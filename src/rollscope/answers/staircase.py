"""The tail of one step as a picture."""

from rollscope.analysis.staircase import Staircase, staircase
from rollscope.answers.facts import gather_steps
from rollscope.answers.scope import known_steps
from rollscope.answers.source import Source
from rollscope.errors import CommandError

__all__ = ["step_staircase"]


def step_staircase(source: Source, number: int) -> Staircase:
    """Lay out the tail of a step.

    Raises:
        CommandError: The run has no such step.
    """
    gathered, _ = gather_steps(source, number, number, is_light=True)
    if not gathered:
        numbers = known_steps(source)
        known = f"it has {numbers[0]} to {numbers[-1]}" if numbers else "it records none"
        raise CommandError(f"the run has no step {number}; {known}")
    return staircase(gathered[-1])
