"""What of a span decides where it belongs, held for all spans of an import at once.

Whole spans would not fit: what many of them share is kept once, the rest as numbers in columns.
"""

from array import array
from typing import Any, Final, NamedTuple
from zlib import crc32

from rollscope.otlp.aliases import Meaning
from rollscope.otlp.forms import Attrs, Sender, SpanForm
from rollscope.otlp.othernames import DETAILS
from rollscope.otlp.pairs import LOOP
from rollscope.otlp.spankinds import is_engine, is_monitor, phase_of

__all__ = ["Sketches"]

_PLACING: Final = ("run", "task_key", "group", "session", "sample", "step", LOOP)
_ENGINE: Final = "llm_request"
_SEGMENT: Final = "monitor.trace_segment"
_MOST_TEXT: Final = 512


class _Said(NamedTuple):
    """What spans of one session say alike."""

    sender: int
    tracestate: str
    alias: str
    is_told: bool
    places: tuple[tuple[str, Any], ...]


class _Traits(NamedTuple):
    """What tells one sort of span from another."""

    operation: str
    span_kind: str
    has_conversation: bool
    kind: str
    is_engine: bool
    is_monitor: bool
    phase: str


class Sketches:
    """All spans, in the order in which they were seen."""

    def __init__(self) -> None:
        self.trace = array("i")
        self.span_id = array("Q")
        self.parent_id = array("Q")
        self.start_ns = array("q")
        self.end_ns = array("q")
        """0 while open."""
        self.content = array("Q")
        """The same for two that are the same in all."""
        self.error = array("q")
        """The same for two that failed for the same reason; 0 for one that did not."""
        self.request = array("q")
        """The same for two that are about the same request to an engine; 0 for none."""
        self.said = array("i")
        self.traits = array("i")
        self.traces: list[bytes] = []
        self.loops: set[int] = set()
        """Traces with parts of agents' loops; such a session has many traces."""
        self._trace_numbers: dict[bytes, int] = {}
        self._senders: list[Sender] = []
        self._sender_numbers: dict[str, int] = {}
        self._said: list[_Said] = []
        self._said_numbers: dict[_Said, int] = {}
        self._traits: list[_Traits] = []
        self._traits_numbers: dict[_Traits, int] = {}

    def __len__(self) -> int:
        return len(self.span_id)

    def add(self, form: SpanForm, meaning: Meaning, sender: str, content: int, error: int) -> None:
        """Take in a span.

        Args:
            form: The span, admitted.
            meaning: What its attributes say.
            sender: What tells its sender from others.
            content: The same for two that are the same in all.
            error: The same for two that failed for the same reason; 0 for one that did not.
        """
        place = meaning.place
        trace = _number(self._trace_numbers, self.traces, form.trace_id)
        if LOOP in place:
            self.loops.add(trace)
        if sender not in self._sender_numbers:
            self._sender_numbers[sender] = len(self._senders)
            self._senders.append(form.sender)
        said = _Said(
            self._sender_numbers[sender],
            form.tracestate if "rollscope=" in form.tracestate else "",
            meaning.session_alias,
            meaning.is_told,
            tuple([(name, _plain(place[name])) for name in _PLACING if name in place]),
        )
        traits = _Traits(
            str(place.get("operation", ""))[:64],
            str(place.get("span_kind", ""))[:64],
            "conversation" in place,
            str(place.get("kind", ""))[:64],
            is_engine(form),
            is_monitor(form),
            phase_of(form, meaning) or "",
        )
        self.trace.append(trace)
        self.span_id.append(form.span_id)
        self.parent_id.append(form.parent_id)
        self.start_ns.append(form.start_ns)
        self.end_ns.append(0 if form.is_open else form.end_ns)
        self.content.append(content)
        self.error.append(error)
        self.request.append(_request_of(form.attrs))
        self.said.append(_number(self._said_numbers, self._said, said))
        self.traits.append(_number(self._traits_numbers, self._traits, traits))

    def key(self, at: int) -> int:
        """Give what tells a span from those of all traces."""
        return self.trace[at] << 64 | self.span_id[at]

    def parent_key(self, at: int) -> int:
        """Give the key of its parent."""
        return self.trace[at] << 64 | self.parent_id[at]

    def is_empty_handed(self, at: int) -> bool:
        """Say whether a span says nothing of where it belongs."""
        said = self._said[self.said[at]]
        return not said.places and not said.tracestate

    def is_loop_root(self, at: int) -> bool:
        """Say whether a span stands for all of an agent's loop."""
        return (LOOP, "session") in self._said[self.said[at]].places

    def is_engine(self, at: int) -> bool:
        """Say whether an inference engine made a span."""
        return self._traits[self.traits[at]].is_engine

    def sender(self, at: int) -> Sender:
        """Give who sent a span."""
        return self._senders[self._said[self.said[at]].sender]

    def opens_session(self, at: int) -> bool:
        """Say whether a span says itself which session it belongs to, or that it is one."""
        said, traits = self._said[self.said[at]], self._traits[self.traits[at]]
        is_agent = traits.operation in ("invoke_agent", "invoke_workflow")
        return bool(said.alias) or is_agent or traits.kind == "session"

    def phase(self, at: int, phase_above: str, session_id: int | None) -> str:
        """Give the phase that what is below a span lies in."""
        traits = self._traits[self.traits[at]]
        if session_id == self.span_id[at] or traits.kind in ("step", "task"):
            return ""
        return traits.phase if traits.phase and session_id is not None else phase_above

    def rebuild(self, at: int) -> tuple[SpanForm, Meaning]:
        """Give as much of a span as has to be known to place it."""
        said, traits = self._said[self.said[at]], self._traits[self.traits[at]]
        place: dict[str, Any] = dict(said.places)
        for name in ("operation", "span_kind", "kind"):
            if value := getattr(traits, name):
                place[name] = value
        if traits.has_conversation:
            place["conversation"] = ""
        end_ns = self.end_ns[at]
        form = SpanForm(
            sender=self._senders[said.sender],
            scope="",
            trace_id=self.traces[self.trace[at]],
            span_id=self.span_id[at],
            parent_id=self.parent_id[at],
            name=_ENGINE if traits.is_engine else "",
            kind=0,
            start_ns=self.start_ns[at],
            end_ns=end_ns,
            attrs={_SEGMENT: ""} if traits.is_monitor else {},
            tracestate=said.tracestate,
            is_open=not end_ns,
        )
        return form, Meaning(place, {}, {}, said.alias, said.is_told)

    def forget_words(self) -> None:
        """Let go of what is needed only until all spans are placed."""
        self._said, self._said_numbers = [], {}
        self._trace_numbers = {}
        for column in ("said", "traits", "content", "start_ns", "end_ns", "request"):
            setattr(self, column, array("b"))


def _request_of(attrs: Attrs) -> int:
    for name in DETAILS["request_id"]:
        if isinstance(named := attrs.get(name), str) and named:
            data = named.encode("utf-8", "replace")
            return crc32(data) << 24 | len(data) & 0xFFFFFF
    return 0


def _number(numbers: dict[Any, int], items: list[Any], item: Any) -> int:  # noqa: ANN401
    number = numbers.get(item)
    if number is None:
        number = numbers[item] = len(items)
        items.append(item)
    return number


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Make a value that can be told apart; what is no word or number places nothing."""
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else value[:_MOST_TEXT]
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)  # equal to it, but not as text
    if isinstance(value, bool):
        return str(value)
    return value if isinstance(value, int | float) and value == value else None
