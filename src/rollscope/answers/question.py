"""What a question is: its parameters, how they are read, and the type of its answer.

A question is asked with text, as an address or a command gives it. All of it is read before any
work is done, and whatever is wrong with it is told in a sentence that says what would be right.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from rollscope.analysis.filters import Filter, parse_filter
from rollscope.answers.scope import StepScope, parse_scope, resolve_scope
from rollscope.answers.source import Source
from rollscope.errors import CommandError
from rollscope.store.embedded import RunStore

__all__ = ["Given", "Opener", "Parameter", "ParameterKind", "Question"]

ParameterKind = Literal["text", "number", "flag", "choice", "scope", "filter", "time"]
"""`scope` is `latest`, `all`, `37` or `30-40`; a `time` is whole nanoseconds since 1970."""
Opener = Callable[[str], Source]
"""Opens another run by its name."""

_LARGEST: Final = 2**63 - 1
_FLAGS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a question can be asked with."""

    name: str
    kind: ParameterKind
    default: str | None = None
    """What stands for it if it is not given; None if it has to be."""
    doc: str
    choices: tuple[str, ...] = ()
    """What a choice can be."""
    least: int = 0
    """The lowest that a number can be."""
    most: int = _LARGEST
    """The highest that a number can be."""

    @property
    def is_needed(self) -> bool:
        """Whether it has to be given."""
        return self.default is None

    def check(self, text: str) -> None:
        """See that a text can be read.

        Raises:
            CommandError: It cannot; the message says what could.
            FilterError: It is no filter.
        """
        match self.kind:
            case "number" | "time":
                self.read_number(text)
            case "flag":
                self.read_flag(text)
            case "choice" if text not in self.choices:
                self._refuse(text, f"one of {', '.join(self.choices)}")
            case "scope" if text:
                parse_scope(text)
            case "filter":
                parse_filter(text)

    def read_number(self, text: str) -> int | None:
        """Read a whole number; None if there is none."""
        if text == "":
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            self._refuse(text, "a whole number")
        number = int(text)
        if not self.least <= number <= self.most:
            high = "up" if self.most == _LARGEST else f"to {self.most:,}"
            self._refuse(text, f"a whole number from {self.least:,} {high}")
        return number

    def read_flag(self, text: str) -> bool:
        """Read a yes or no."""
        value = _FLAGS.get(text.lower())
        if value is None:
            self._refuse(text, "1 or 0")
        return bool(value)

    def _refuse(self, text: str, allowed: str) -> None:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise CommandError(f"{self.name} is {shown!r}; it must be {allowed}", 2)


class Given:
    """What a question was asked with, read; what was left out has its default."""

    def __init__(
        self,
        source: Source,
        parameters: Mapping[str, Parameter],
        texts: Mapping[str, str],
        opener: Opener | None = None,
    ) -> None:
        self._source = source
        self._parameters = parameters
        self._texts = texts
        self._opener = opener

    def text(self, name: str) -> str:
        """Give a text as it is."""
        return self._texts[name]

    def choice(self, name: str) -> Any:  # noqa: ANN401  (callers know it as a Literal)
        """Give one of the words that a parameter can be."""
        return self._texts[name]

    def number(self, name: str) -> int:
        """Give a whole number that is always there."""
        return self.maybe_number(name) or 0

    def maybe_number(self, name: str) -> int | None:
        """Give a whole number or time; None if none was given."""
        return self._parameters[name].read_number(self._texts[name])

    def ended(self) -> tuple[int | None, int | None]:
        """Give the stretch of time in which sessions ended, where that is asked for."""
        return self.maybe_number("ended_from_ns"), self.maybe_number("ended_to_ns")

    def flag(self, name: str) -> bool:
        """Give a yes or no."""
        return self._parameters[name].read_flag(self._texts[name])

    def filter(self, name: str) -> Filter:
        """Give a filter, read."""
        return parse_filter(self._texts[name])

    def scope(self, name: str) -> StepScope:
        """Give the steps that are meant, which the run has."""
        return resolve_scope(self._source, self._texts[name])

    def step(self, name: str) -> int:
        """Give the one step that is meant.

        Raises:
            CommandError: Several are, or the run has none.
        """
        scope = self.scope(name)
        if scope.first is None or scope.first != scope.last:
            asked = self._texts[name]
            reason = "the run records no steps" if asked == "latest" else f"{asked!r} is not one"
            raise CommandError(f"{name} must be one step, such as 37 or latest; {reason}", 2)
        return scope.first

    def other_run(self, name: str) -> Source:
        """Open the run that a text names; this one if it names none.

        Raises:
            CommandError: Other runs cannot be reached from here.
        """
        wanted = self._texts[name]
        if not wanted:
            return self._source
        if self._opener is None:
            raise CommandError(f"{name}: no other run can be opened from here", 2)
        return self._opener(wanted)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question that a run can be asked."""

    name: str
    doc: str
    """What it answers, in a line."""
    parameters: tuple[Parameter, ...] = ()
    answer: type[msgspec.Struct]
    make: Callable[[RunStore, Given], msgspec.Struct]
    """Makes the answer from parameters that have been read."""

    def ask(
        self, source: RunStore, given: Mapping[str, str] | None = None, opener: Opener | None = None
    ) -> msgspec.Struct:
        """Answer it for a run.

        Args:
            source: The run.
            given: Its parameters as text.
            opener: Opens other runs, for questions about two.

        Raises:
            CommandError: A parameter is unknown, missing or makes no sense (exit code 2), or the
                run has nothing of what is asked for (exit code 1).
            FilterError: A filter cannot be read.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        texts = self._complete(given or {}, parameters)
        for name, text in texts.items():
            parameters[name].check(text)
        return self.make(source, Given(source, parameters, texts, opener))

    def _complete(
        self, given: Mapping[str, str], parameters: Mapping[str, Parameter]
    ) -> dict[str, str]:
        unknown = sorted(given.keys() - parameters.keys())
        if unknown:
            known = f"it takes {', '.join(parameters)}" if parameters else "it takes no parameters"
            raise CommandError(f"{self.name} takes no parameter {unknown[0][:40]!r}; {known}", 2)
        texts: dict[str, str] = {}
        for name, parameter in parameters.items():
            text = given.get(name, parameter.default)
            if text is None:
                raise CommandError(f"{self.name} needs {name}: {parameter.doc}", 2)
            texts[name] = text
        return texts
