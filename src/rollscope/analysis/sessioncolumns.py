"""What sessions can be told apart by: their attributes in columns, as labels or as numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rollscope.analysis.details import DetailLabels
from rollscope.analysis.rows import SessionRow

__all__ = ["SessionColumn", "session_columns"]

_LABELS = (str, bool)
_NUMBERS = (int, float)
_PLAIN = (str, int, float)
_NO_LABEL: frozenset[str] = frozenset()
_NO_DETAILS: Mapping[str, frozenset[str]] = {}


class SessionColumn(msgspec.Struct):
    """One attribute of some sessions; it has labels or numbers."""

    name: str
    labels: list[frozenset[str]] | None = None
    numbers: list[float | None] | None = None

    def members(self, label: str) -> int:
        """Give the sessions with a label as a number, one bit for each session."""
        labels = self.labels or []
        return int("".join("1" if label in of_session else "0" for of_session in labels), 2)


def session_columns(sessions: Sequence[SessionRow], details: DetailLabels) -> list[SessionColumn]:
    """Give every attribute that any of the sessions has.

    Args:
        sessions: The sessions, in the order in which the columns will have them.
        details: What the phases of each session were of, as `detail_labels` gives it.
    """
    columns = [
        _label_column("host", [row.host or None for row in sessions]),
        _label_column("pool", [row.pool or None for row in sessions]),
        _label_column("task", [row.task_key for row in sessions]),
        _label_column("family", [row.family for row in sessions]),
        _label_column("group", [row.group for row in sessions]),
        _label_column("step", [row.step for row in sessions]),
        _label_column("version", [row.version_start for row in sessions]),
        _label_column("attempt", [row.attempt for row in sessions]),
        _label_column("outcome", [row.outcome for row in sessions]),
        _label_column("reason", [row.reason for row in sessions]),
        SessionColumn("waited", numbers=[row.waited_ns for row in sessions]),
        SessionColumn("turns", numbers=[row.turns for row in sessions]),
        SessionColumn("tokens_in", numbers=[row.tokens_in for row in sessions]),
        SessionColumn("tokens", numbers=[row.tokens_out for row in sessions]),
        SessionColumn("reward", numbers=[row.reward for row in sessions]),
    ]
    columns.extend(_detail_columns(sessions, details))
    columns.extend(
        _attribute_column(name, [row.attrs.get(name) for row in sessions])
        for name in sorted({name for row in sessions for name in row.attrs})
    )
    return columns


def _label_column(name: str, values: Iterable[str | float | None]) -> SessionColumn:
    given = list(values)
    sets = {value: frozenset({str(value)}) for value in set(given) - {None}}
    return SessionColumn(name, labels=[sets.get(value, _NO_LABEL) for value in given])


def _detail_columns(sessions: Sequence[SessionRow], details: DetailLabels) -> list[SessionColumn]:
    found = [details.get(session.span_id, _NO_DETAILS) for session in sessions]
    names = sorted({name for of_session in found for name in of_session})
    return [SessionColumn(name, [row.get(name, _NO_LABEL) for row in found]) for name in names]


# Any: what users attach to a session may be of any type.
def _attribute_column(name: str, values: Sequence[Any]) -> SessionColumn:
    """Read an attribute as a number if it always is one, else as text; lists are left out."""
    name = f"attr.{name}"
    if any(isinstance(value, _LABELS) for value in values):
        return _label_column(name, [_label(value) for value in values])
    return SessionColumn(name, numbers=[_finite(value) for value in values])


def _label(value: object) -> str | float | None:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, _PLAIN) else None


def _finite(value: object) -> float | None:
    return value if isinstance(value, _NUMBERS) and math.isfinite(value) else None
