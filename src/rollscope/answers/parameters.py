"""Parameters that several questions have."""

from typing import Any, Final, get_args

import msgspec

from rollscope.answers.question import Parameter

__all__ = [
    "ENDED",
    "FILTER",
    "LAST_STEPS",
    "LATEST",
    "SCOPE",
    "SINCE",
    "STEP",
    "UNTIL",
    "choice",
    "flag",
    "moment",
    "number",
    "text",
]

SCOPE: Final = Parameter(
    name="scope", kind="scope", default="all", doc="which steps: latest, all, 37 or 30-40"
)
LATEST: Final = msgspec.structs.replace(SCOPE, default="latest")
LAST_STEPS: Final = msgspec.structs.replace(
    SCOPE, default="", doc="which steps; the last ones if none are given"
)
STEP: Final = Parameter(name="step", kind="scope", default="latest", doc="which step")
FILTER: Final = Parameter(
    name="filter", kind="filter", default="", doc="which sessions, in the filter language"
)
SINCE: Final = Parameter(
    name="since_ns", kind="time", default="", doc="only what had not ended by then"
)
UNTIL: Final = Parameter(
    name="until_ns", kind="time", default="", doc="only what had started by then"
)


def choice(name: str, of: Any, default: str, doc: str) -> Parameter:  # noqa: ANN401  (a Literal)
    """Make a parameter that is one of a few words."""
    return Parameter(name=name, kind="choice", choices=get_args(of), default=default, doc=doc)


def flag(name: str, doc: str) -> Parameter:
    """Make a parameter that is off if it is not given."""
    return Parameter(name=name, kind="flag", default="0", doc=doc)


def moment(name: str, doc: str) -> Parameter:
    """Make a parameter that is a time in nanoseconds, or nothing."""
    return Parameter(name=name, kind="time", default="", doc=doc)


ENDED: Final = (
    moment("ended_from_ns", "only what ended then or later; open ones end now"),
    moment("ended_to_ns", "only what ended before"),
)


def number(name: str, default: int, most: int, doc: str, *, least: int = 1) -> Parameter:
    """Make a parameter that is a whole number."""
    return Parameter(
        name=name, kind="number", default=str(default), least=least, most=most, doc=doc
    )


def text(name: str, default: str | None, doc: str) -> Parameter:
    """Make a parameter that is any text; it has to be given where there is no default."""
    return Parameter(name=name, kind="text", default=default, doc=doc)
