"""What a request says, however it was written: the form that both readers give.

Ids of traces are 16 bytes, ids of spans numbers, 0 for none. Attribute values are plain Python.
"""

from typing import Any, Final

import msgspec

from rollscope.errors import RollscopeError
from rollscope.model.kinds import MetricType

__all__ = [
    "MOST_ATTRS",
    "MOST_BUCKETS",
    "MOST_DEPTH",
    "MOST_EVENTS",
    "MOST_ITEMS",
    "MOST_ITEM_BYTES",
    "MOST_LINKS",
    "Attrs",
    "EventForm",
    "LogForm",
    "OtlpError",
    "PointForm",
    "Request",
    "Sender",
    "SpanForm",
    "TooMuch",
]

MOST_ITEMS: Final = 200_000
"""Spans, points or log records of one request."""
MOST_ITEM_BYTES: Final = 4 * 1024 * 1024
"""Of one span, point or log record; what is longer is left out and counted."""
MOST_ATTRS: Final = 128
MOST_EVENTS: Final = 128
MOST_LINKS: Final = 16
MOST_BUCKETS: Final = 2_000
MOST_DEPTH: Final = 4
"""Lists and maps inside of attribute values; what lies deeper is left out."""

Attrs = dict[str, Any]


class OtlpError(RollscopeError):
    """A request cannot be read; the sender must not send it again."""


class TooMuch(OtlpError):
    """A request holds more than may come at once; the sender may send it in pieces."""


class Sender(msgspec.Struct, eq=False):
    """Who made what follows: a resource, as its attributes describe it."""

    attrs: Attrs
    key: str | None = None
    """What tells it from others, once that was asked for."""
    run: str | None = None
    """The run that it names, or else its service; once that was asked for."""
    names_run: bool = False


class EventForm(msgspec.Struct):
    """Something that happened during a span."""

    name: str
    time_ns: int
    attrs: Attrs


class SpanForm(msgspec.Struct, kw_only=True, gc=False):
    """A span as it came; nothing is known yet of where it belongs."""

    sender: Sender
    scope: str
    """The instrumentation that made it."""
    trace_id: bytes
    span_id: int
    parent_id: int
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attrs: Attrs
    status: int = 0
    message: str = ""
    tracestate: str = ""
    events: list[EventForm] = []
    links: list[str] = []
    """`traceparent`s of spans that it names."""
    is_open: bool = False


class PointForm(msgspec.Struct, kw_only=True):
    """One point of a metric, in our buckets if it is a histogram."""

    sender: Sender
    type: MetricType
    name: str
    labels: dict[str, str]
    time_ns: int
    start_ns: int
    value: float
    """Of a histogram, the sum."""
    is_difference: bool = False
    """Whether it tells what changed since the last point, not how things stand."""
    count: int = 0
    min: float | None = None
    max: float | None = None
    buckets: dict[int, int] = {}

    @property
    def extremes(self) -> tuple[float | None, float | None]:
        """What may narrow its buckets: not those of a total, or buckets would move as it grows."""
        return (self.min, self.max) if self.is_difference else (None, None)


class LogForm(msgspec.Struct, kw_only=True):
    """A log record that may say something about a span."""

    sender: Sender
    trace_id: bytes
    span_id: int
    name: str
    time_ns: int
    attrs: Attrs


class Request(msgspec.Struct):
    """All that a request holds of one signal, and what of it could not be used."""

    spans: list[SpanForm] = []
    points: list[PointForm] = []
    logs: list[LogForm] = []
    digests: list[int] = []
    """Of each span, if it came in JSON: the same for two that came alike."""
    rejected: dict[str, int] = {}
    """How many items were left out, by the reason."""
    lenient: set[str] = set()
    """Liberties that the sender took with the format, in words."""
    seen: int = 0
    fields_left: int = 1_000_000
    """How many more fields may be walked over; honest requests have few beside their items."""

    def count_item(self) -> None:
        """Count one more item.

        Raises:
            TooMuch: It is one too many.
        """
        self.seen += 1
        if self.seen > MOST_ITEMS:
            raise TooMuch(f"a request may hold {MOST_ITEMS} spans, points or records; send fewer")

    def reject(self, why: str, count: int = 1) -> None:
        """Leave out an item."""
        self.rejected[why] = self.rejected.get(why, 0) + count
