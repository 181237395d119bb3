"""What a foreign span is: a session, a phase of one, a state, a step, or an ordinary span."""

import re
from typing import Final, NamedTuple

from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, Category, Kind
from rollscope.otlp.aliases import Meaning
from rollscope.otlp.forms import SpanForm
from rollscope.otlp.pairs import LOOP

__all__ = [
    "SpanKind",
    "is_agent",
    "is_engine",
    "is_model_work",
    "is_monitor",
    "phase_of",
    "plain_kind",
    "span_kind",
]

_OPERATIONS: Final = {
    "chat": "generate",
    "text_completion": "generate",
    "generate_content": "generate",
    "execute_tool": "toolcall",
}
_AGENT_OPERATIONS: Final = frozenset({"invoke_agent", "invoke_workflow"})
_OPENINFERENCE: Final = {"LLM": "generate", "TOOL": "toolcall", "EVALUATOR": "reward"}
_STAGES: Final = {
    "rollout.controller.generate": "generate",
    "rollout.worker.generate": "generate",
    "judger.run": "reward",
}
_NAMES: Final = {"generate": "generate", "toolcall": "toolcall", "reward": "reward", **_STAGES}
_ROLL_TURN: Final = "step"
_LOOP_TURN: Final = re.compile(r"gateway_generation|turn_\d+")
_STEP_NAMES: Final = frozenset({"pipeline_step"})
_EVENT: Final = "event"
"""What an event is exported as that belongs to no span."""
_SCOPES: Final = frozenset({str(Kind.STEP), str(Kind.TASK), str(Kind.SESSION)})
"""Kinds whose spans are called after them, as a rule."""
_SEGMENT: Final = "monitor.trace_segment"
_STATE_SEGMENT: Final = "state_interval"
_ENGINE_NAMES: Final = frozenset({"llm_request"})
_ENGINE_SCOPES: Final = ("vllm", "sglang")
_NAME_BYTES: Final = 512
_LOCAL_KINDS: Final = frozenset({0, 1})
"""Unspecified and internal; all others cross a border."""


class SpanKind(NamedTuple):
    """What a span is written as."""

    code: int
    name: str
    phase: str
    """The phase that it is or lies in; empty if none."""


def is_agent(meaning: Meaning) -> bool:
    """Say whether a span is the root of a session by its own account."""
    place = meaning.place
    return place.get("operation") in _AGENT_OPERATIONS or place.get("kind") == Kind.SESSION


def is_model_work(meaning: Meaning) -> bool:
    """Say whether a span is of the kind that sessions are made of."""
    place = meaning.place
    known = place.keys() & {"operation", "span_kind", "conversation"}
    return bool(known) or place.get("kind") == Kind.PHASE


def is_engine(form: SpanForm) -> bool:
    """Say whether an inference engine made the span, which knows of requests only."""
    if form.name in _ENGINE_NAMES or form.scope.startswith(_ENGINE_SCOPES):
        return True
    return str(form.attrs.get("module", "")).startswith("sglang::")


def is_monitor(form: SpanForm) -> bool:
    """Say whether a span is a state or operation of a worker, in a trace of its own."""
    return _SEGMENT in form.attrs


def plain_kind(form: SpanForm, phase_above: str = "", category: object = None) -> SpanKind:
    """Give what a span is written as that is nothing special."""
    name = clean_text(form.name, _NAME_BYTES) or "span"
    known = category if isinstance(category, str) and category in SPAN_CODES else _category(form)
    return SpanKind(SPAN_CODES[known], name, phase_above)


def span_kind(
    form: SpanForm, meaning: Meaning, session_id: int | None, phase_above: str
) -> SpanKind:
    """Say what a span is written as.

    Args:
        form: The span.
        meaning: What its attributes say.
        session_id: The session that it belongs to, if any.
        phase_above: The phase that its parent is or lies in; empty if none.
    """
    if meaning.is_told:
        return _told_kind(form, meaning, phase_above)
    given = meaning.place.get("kind")
    if session_id == form.span_id:
        return SpanKind(KIND_CODES[Kind.SESSION], str(Kind.SESSION), "")
    if given == Kind.STEP or (form.name in _STEP_NAMES and "step" in meaning.place):
        return SpanKind(KIND_CODES[Kind.STEP], str(Kind.STEP), "")
    if given == Kind.TASK:
        return SpanKind(KIND_CODES[Kind.TASK], str(Kind.TASK), "")
    is_interval = form.attrs.get(_SEGMENT) == _STATE_SEGMENT and LOOP not in meaning.place
    if given == Kind.STATE or is_interval:
        state = clean_text(str(form.attrs.get("state_name") or form.name), _NAME_BYTES)
        return SpanKind(KIND_CODES[Kind.STATE], state, phase_above)
    phase = phase_of(form, meaning) if session_id is not None else None
    # Of phases inside each other that are called the same, the outermost counts.
    if phase is not None and phase != phase_above:
        return SpanKind(KIND_CODES[Kind.PHASE], phase, phase)
    return plain_kind(form, phase_above)


def _told_kind(form: SpanForm, meaning: Meaning, phase_above: str) -> SpanKind:
    """Give what a span was where it was recorded."""
    given = str(meaning.place.get("kind"))
    if given == _EVENT:
        return SpanKind(EVENT_CODE, clean_text(form.name, _NAME_BYTES) or _EVENT, phase_above)
    if given not in KIND_CODES:
        return plain_kind(form, phase_above, meaning.place.get("category"))
    plain = given if given in _SCOPES else form.name
    name = meaning.place.get("name") or meaning.place.get("phase") or plain
    return SpanKind(KIND_CODES[Kind(given)], clean_text(str(name), _NAME_BYTES), phase_above)


def _category(form: SpanForm) -> str:
    if is_engine(form):
        return Category.COMPUTE
    return Category.MISC if form.kind in _LOCAL_KINDS else Category.COMM


def phase_of(form: SpanForm, meaning: Meaning) -> str | None:
    """Give the phase that a span is if it is in a session; None if it is none."""
    place = meaning.place
    given = place.get("phase")
    if isinstance(given, str) and given and _is_stage(form, place):
        return _STAGES.get(given, clean_text(given, _NAME_BYTES))
    phase = _OPERATIONS.get(str(place.get("operation")))
    phase = phase or _OPENINFERENCE.get(str(place.get("span_kind")).upper())
    if phase is None and form.scope.startswith("roll") and form.name == _ROLL_TURN:
        return "toolcall"
    if phase is None and LOOP in place and _LOOP_TURN.fullmatch(form.name):
        return "generate"
    if phase is None and not is_engine(form):
        phase = _NAMES.get(form.name)
    return phase


def _is_stage(form: SpanForm, place: dict[str, object]) -> bool:
    """Say whether `stage` means a phase: to others than XTuner it may mean anything."""
    is_ours = place.get("kind") == Kind.PHASE or "rollscope.phase" in form.attrs
    return is_ours or "xtuner.stage" in form.attrs or form.scope == "xtuner"
