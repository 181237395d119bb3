"""What one trace of verifiers says: its stages, its calls of a model, its score, its errors."""

from typing import Any, Final

import msgspec

from rollscope.analysis.intervals import clip, union_ns
from rollscope.importing.verifiers_fields import (
    Fault,
    Score,
    Tokens,
    last_fault,
    read_fault,
    read_score,
    read_time,
    read_tokens,
)
from rollscope.importing.verifiers_records import Members, text_of
from rollscope.otlp.aliases import first_number, whole_number

__all__ = ["Timed", "Trace", "read_trace"]

_STAGES: Final = {
    "boot": "boot",
    "setup": "setup",
    "agent": "agent",
    "finalize": "finalize",
    "scoring": "reward",
}
_MOST_METRICS: Final = 64
_CONTENTS: Final = ("nodes", "tools", "root_reply", "info")
_KNOWN: Final = frozenset(_CONTENTS) | frozenset(
    (
        *("version", "id", "verifiers", "task", "agent", "calls", "rewards", "metrics"),
        *("extra_usage", "mm_token_type_id_map", "request_rewrites", "response_rewrites"),
        *("is_completed", "ok", "stop_condition", "is_timeout", "errors", "timing", "state"),
        *("num_input_tokens", "num_output_tokens", "num_total_tokens"),
        # What an episode has beside, for a trace that stands alone.
        *("env", "group", "run", "traces"),
    )
)


class Timed(msgspec.Struct):
    """A stage or a call."""

    name: str
    start_ns: int
    end_ns: int
    """0 if it was not reached."""
    attrs: dict[str, Any] = {}
    fault: Fault | None = None


class Trace(msgspec.Struct):
    """One agent's part in an episode."""

    name: str
    source_id: str
    is_trainable: bool
    is_ok: bool
    is_completed: bool
    is_timeout: bool
    stages: list[Timed]
    calls: list[Timed]
    tokens: Tokens
    turns: int
    score: Score
    fault: Fault | None
    attrs: dict[str, Any]
    start_ns: int = 0
    end_ns: int = 0


def read_trace(record: Members) -> Trace:
    """Read a trace, whatever it may hold."""
    agent, timing = record.inside("agent"), record.inside("timing")
    calls = [_read_call(call) for call in _list(record, "calls") if isinstance(call, dict)]
    tokens = Tokens()
    for _, used in calls:
        tokens = tokens.plus(used)
    timed = [call for call, _ in calls if call.start_ns]
    stages = _read_stages(timing, timed)
    metrics = record.inside("metrics")
    turns = sum(1 for call, _ in calls if "node" in call.attrs)
    trace = Trace(
        name=text_of(agent.get("name")) or "agent",
        source_id=record.text("id"),
        is_trainable=agent.get("trainable") is not False,
        is_ok=record.get("ok") is True,
        is_completed=record.get("is_completed") is not False,
        is_timeout=record.get("is_timeout") is True,
        stages=stages,
        calls=timed,
        tokens=tokens,
        turns=turns or whole_number(metrics.get("num_turns")) or 0,
        score=read_score(record.get("rewards")),
        fault=last_fault(record.get("errors")),
        attrs=_attrs(record, metrics),
    )
    times = [(one.start_ns, one.end_ns) for one in (*stages, *timed)]
    starts = [start for start, _ in times]
    trace.start_ns = read_time(timing.get("start")) or min(starts, default=0)
    trace.end_ns = max((max(both) for both in times), default=trace.start_ns)
    return trace


def _read_stages(timing: dict[str, Any], calls: list[Timed]) -> list[Timed]:
    stages = []
    for source, name in _STAGES.items():
        told = timing.get(source)
        if not isinstance(told, dict):
            continue
        start_ns, end_ns = read_time(told.get("start")), read_time(told.get("end"))
        if not start_ns and not end_ns:
            continue
        stage = Timed(name, start_ns or end_ns, end_ns)
        if not start_ns:
            stage.attrs["start_guessed"] = True
        if source == "agent" and end_ns > start_ns:
            spans = [(call.start_ns, max(call.end_ns, call.start_ns)) for call in calls]
            busy_ns = union_ns(clip(spans, (start_ns, end_ns)))
            stage.attrs["harness_s"] = (end_ns - start_ns - busy_ns) / 1e9
        stages.append(stage)
    return stages


def _read_call(call: dict[str, Any]) -> tuple[Timed, Tokens]:
    told = call.get("time")
    told = told if isinstance(told, dict) else {}
    fault = read_fault(call["error"]) if isinstance(call.get("error"), dict) else None
    tokens = read_tokens(call.get("usage"))
    attrs: dict[str, Any] = dict(tokens.attrs())
    for key, name in (("model", "model"), ("endpoint", "endpoint"), ("finish_reason", "finish")):
        if text := text_of(call.get(key)):
            attrs[name] = text
    if (node := whole_number(call.get("node"))) is not None:
        attrs["node"] = node
    policy = call.get("policy")
    if isinstance(policy, dict) and (code := text_of(policy.get("code"))):
        attrs["policy"] = code
    start_ns, end_ns = read_time(told.get("start")), read_time(told.get("end"))
    return Timed("generate", start_ns or end_ns, end_ns, attrs, fault), tokens


def _attrs(record: Members, metrics: dict[str, Any]) -> dict[str, Any]:
    attrs: dict[str, Any] = dict(record.others(_KNOWN))
    if stop := record.text("stop_condition"):
        attrs["stop"] = stop
    if record.get("is_timeout") is True:
        attrs["is_timeout"] = True
    if version := text_of(record.inside("verifiers").get("version")):
        attrs["verifiers"] = version
    for key, name in (("nodes", "messages"), ("tools", "tools")):
        if count := record.count(key):
            attrs[name], attrs[f"{name}_bytes"] = count, record.size(key)
    for name, value in list(metrics.items())[:_MOST_METRICS]:
        if (number := first_number(value)) is not None:
            attrs[f"metric.{name}"] = number
    used = Tokens()
    for usage in _list(record, "extra_usage"):
        used = used.plus(read_tokens(usage))
    attrs.update(used.attrs("judge_tokens_"))
    return attrs


def _list(record: Members, key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []
