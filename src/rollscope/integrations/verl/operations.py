"""What verl's traced methods are: which phase a call is, and what it and its result tell."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.spans import Session, lineage
from rollscope.integrations.aftermath import finite
from rollscope.model.kinds import KIND_CODES, Kind

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["facts_of_call", "facts_of_result", "new_operation"]

_PHASE: Final = KIND_CODES[Kind.PHASE]
_PHASES: Final = {
    "generate": "generate",
    "execute": "toolcall",
    "call_tool": "toolcall",
    "_call_tool": "toolcall",
    "compute_score": "reward",
    "compute_reward": "reward",
    "calc_reward": "reward",
    "run_single": "reward",
}
"""By the name of the method; any other is a span."""


def new_operation(recorder: Recorder, func: Callable[..., Any], attrs: dict[str, Any]) -> Span:
    """Give the span of a call; inside of a phase of the same name it is no phase again."""
    phase = _PHASES.get(getattr(func, "__name__", ""))
    name = getattr(func, "__qualname__", type(func).__qualname__)
    if phase is None or _is_inside(recorder.current.get(), phase):
        return recorder.new_span(name, "misc", attrs)
    return recorder.new_phase(phase, {"source_name": name, **attrs})


def facts_of_call(
    func: Callable[..., Any], owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Give the tool that is called, or how long the prompt is."""
    phase = _PHASES.get(getattr(func, "__name__", ""))
    if phase == "toolcall":
        tool = getattr(owner, "name", None)
        return {"tool": tool if isinstance(tool, str) else type(owner).__name__}
    if phase == "generate":
        count = _length(kwargs.get("prompt_ids"))
        return {} if count is None else {"tokens_in": count}
    return {}


def facts_of_result(span: Span, result: object) -> None:
    """Keep what a result tells: tokens with the phase, reward and turns with the session."""
    facts: dict[str, Any]
    if span.what == _PHASE:
        facts = {
            "tokens_out": _length(getattr(result, "token_ids", None)),
            "finish": _text(getattr(result, "stop_reason", None)),
        }
        span.set(**_known(facts))
    session = next((outer for outer in lineage(span) if isinstance(outer, Session)), None)
    if session is None or not hasattr(result, "response_ids"):
        return
    facts = {
        "reward": finite(getattr(result, "reward_score", None)),
        "turns": _count(getattr(result, "num_turns", None)),
    }
    session.set(**_known(facts))


def _is_inside(span: Span, phase: str) -> bool:
    return any(
        getattr(outer, "what", None) == _PHASE and outer.name == phase for outer in lineage(span)
    )


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if fact is not None}


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, Sized) and not isinstance(value, (str, dict)) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if type(value) is int else None
