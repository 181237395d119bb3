"""Which steps a question is about: `latest`, `all`, `37`, `30-40`."""

import re
from typing import Final

import msgspec

from rollscope.answers.source import Source
from rollscope.errors import CommandError

__all__ = ["StepScope", "known_steps", "parse_scope", "resolve_scope"]

_RANGE: Final = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")


class StepScope(msgspec.Struct, frozen=True):
    """A stretch of steps, both ends included; without ends, everything, steps or none."""

    first: int | None = None
    last: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.first is None

    @property
    def text(self) -> str:
        """How it is written."""
        if self.first is None:
            return "all"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def parse_scope(text: str) -> StepScope | None:
    """Read a scope; None stands for the latest step.

    Raises:
        CommandError: It is none.
    """
    text = text.strip().lower()
    if text == "latest":
        return None
    if text == "all":
        return StepScope()
    match = _RANGE.fullmatch(text)
    if match is None:
        raise CommandError(f"{text!r} is no scope; write latest, all, a step as 37, or 30-40", 2)
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    if last < first:
        raise CommandError(f"the scope {text!r} ends before it begins; write {last}-{first}", 2)
    return StepScope(first, last)


def known_steps(source: Source) -> list[int]:
    """Give the numbers of the steps that the trainer recorded, in order."""
    table = source.query("SELECT DISTINCT step FROM steps WHERE step IS NOT NULL ORDER BY step")
    steps: list[int] = table["step"].to_pylist()
    return steps


def resolve_scope(source: Source, text: str) -> StepScope:
    """Read a scope and find the latest step, if that is meant; a run without steps is taken whole.

    Raises:
        CommandError: It is no scope, or the run has no such step.
    """
    scope = parse_scope(text)
    steps = known_steps(source)
    if scope is None:
        return StepScope(steps[-1], steps[-1]) if steps else StepScope()
    if scope.first is not None and scope.last is not None:
        inside = [step for step in steps if scope.first <= step <= scope.last]
        if not inside and not _has_sessions(source, scope.first, scope.last):
            known = f"it has {steps[0]} to {steps[-1]}" if steps else "it records no steps"
            raise CommandError(f"the run has no step {scope.text}; {known}")
    return scope


def _has_sessions(source: Source, first: int, last: int) -> bool:
    sql = """
        SELECT (SELECT count(*) FROM facts WHERE consumed_step BETWEEN $first AND $last)
            + (SELECT count(*) FROM spans
               WHERE kind = 'session' AND step BETWEEN $first AND $last) AS n"""
    return bool(source.query(sql, first=first, last=last)["n"][0].as_py())
