"""The records of sessions that have ended, made in the writer's thread."""

from __future__ import annotations

from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.buffers import HOSTED
from rollscope.model.batch import Fact
from rollscope.runner.outcome import Status
from rollscope.runner.sessioncolumns import encode_alike, encode_begun
from rollscope.runner.sessionfacts import VERDICTS, EndFacts, span_status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.hosted import HostedSession
    from rollscope.model.batch import SpanColumns
    from rollscope.runner.sessionfacts import EndColumns
    from rollscope.runner.task import Task

__all__ = ["announce_sessions", "learn_late", "record_attempt", "record_sessions"]

_ERROR_CHARS: Final = 300


def record_attempt(types: SpanTypes, task: Task) -> None:
    """Record an attempt that is followed by another."""
    span: HostedSession = task.span
    attrs, fields = span.attrs, span.fields
    attrs["attempt"] = task.attempt - 1
    if task.failure is not None:
        attrs["error"] = f"{task.failure.type_name}: {task.failure.text}"[:_ERROR_CHARS]
    fields["outcome"], fields["reason"] = VERDICTS[task.status], task.reason.value
    end_ns = task.finished_ns or span.start_ns
    types.hosted.record(span, end_ns, span_status_of(task.status))


def announce_sessions(
    types: SpanTypes, spans: list[HostedSession]
) -> tuple[SpanColumns | None, list[HostedSession]]:
    """Record that sessions are open.

    Most are as they were begun: their records are given, ready to be written, and with them those
    sessions that have more to say.
    """
    starts = [None if span.settings.is_special else span.describe for span in spans]
    begun = list(compress(spans, starts))
    columns = encode_begun(
        begun, list(filter(None, starts)), types.hosted.traces_of(span.id for span in begun)
    )
    if columns is None:
        return None, spans
    return columns, [span for span, start in zip(spans, starts, strict=True) if start is None]


def record_sessions(types: SpanTypes, hosted: list[Any]) -> SpanColumns | None:
    """Record sessions that have ended.

    Most ran once, and nobody has added anything to them: their records are given back, ready to be
    written. The others become rows, as spans of any kind do.

    Args:
        types: Of the recorder.
        hosted: The entries of `EndFacts`, one session after the other.
    """
    ended = EndFacts._make(hosted[at::HOSTED] for at in range(HOSTED))
    ended = _keep_those(types, ended, _are_alike(ended))
    starts = types.hosted.claim(_spans_of(ended))
    # None stands for one that was read, as those are that were found open or had phases, or that
    # belongs to a task.
    chosen = [
        start is not None or _is_as_described(span)
        for span, start in zip(_spans_of(ended), starts, strict=True)
    ]
    ended = _keep_those(types, ended, chosen)
    traces = types.hosted.traces_of(span.id for span in _spans_of(ended))
    encoded = encode_alike(list(compress(starts, chosen)), ended, traces) if any(chosen) else None
    if encoded is None:
        _record_others(types, ended, repeat(False))
    return encoded


def learn_late(late: list[Any], at_ns: int) -> list[Fact]:
    """Give what is known of sessions only now that their outcomes were handed over.

    Args:
        late: The entries of `EndFacts`, one session after the other.
        at_ns: What time it is.
    """
    ended = map(EndFacts._make, zip(*[iter(late)] * HOSTED, strict=True))
    return [
        Fact(ref.trace_id, ref.span_id, at_ns, _late_facts(facts))
        for facts in ended
        if (ref := facts.span.ref) is not None
    ]


def _late_facts(facts: EndFacts) -> dict[str, Any]:
    known: dict[str, Any] = {}
    if facts.delivered_ns is not None:
        known["post_wait_s"] = (facts.delivered_ns - facts.finished_ns) * 1e-9
        known["total_s"] = (facts.delivered_ns - facts.submitted_ns) * 1e-9
    if facts.status is Status.STALE:  # it has become so in the outbox
        known["outcome"], known["reason"] = VERDICTS[facts.status], facts.reason.value
    return known


def _spans_of(ended: EndColumns) -> list[HostedSession]:
    spans: list[HostedSession] = ended.span
    return spans


def _are_alike(ended: EndColumns) -> list[bool]:
    """Say of each session whether it is as most are, as far as can be seen without a lock."""
    return [
        started_ns is not None
        and attempts == 1
        and error is None
        and not detail
        and not span.settings.is_special
        for span, started_ns, attempts, error, detail in zip(
            ended.span,
            ended.started_ns,
            ended.attempts,
            ended.error,
            ended.detail,
            strict=True,
        )
    ]


def _is_as_described(span: HostedSession) -> bool:
    """Whether nobody has added to a session, or given a verdict of its own."""
    return span.attrs.keys() == {"replica"} and "outcome" not in span.fields


def _keep_those(types: SpanTypes, ended: EndColumns, chosen: list[bool]) -> EndColumns:
    """Record the sessions that are not chosen, one by one, and give the others."""
    if all(chosen):
        return ended
    _record_others(types, ended, chosen)
    return EndFacts._make(list(compress(column, chosen)) for column in ended)


def _record_others(types: SpanTypes, ended: EndColumns, are_done: Iterable[bool]) -> None:
    for facts, is_done in zip(zip(*ended, strict=True), are_done, strict=False):
        if not is_done:
            _record(types, EndFacts._make(facts))


def _record(types: SpanTypes, facts: EndFacts) -> None:
    span = facts.span
    attrs, fields = span.attrs, span.fields
    if facts.admitted_ns is not None:
        attrs["queue_wait_s"] = (facts.admitted_ns - facts.submitted_ns) * 1e-9
        if facts.started_ns is not None:
            attrs["runner_wait_s"] = (facts.started_ns - facts.admitted_ns) * 1e-9
            attrs["execution_s"] = facts.execution_ns * 1e-9
    if facts.delivered_ns is not None:
        attrs["post_wait_s"] = (facts.delivered_ns - facts.finished_ns) * 1e-9
        attrs["total_s"] = (facts.delivered_ns - facts.submitted_ns) * 1e-9
    if facts.error is not None:
        attrs["error"] = f"{facts.error.type_name}: {facts.error.text}"[:_ERROR_CHARS]
    if facts.detail:
        attrs["detail"] = facts.detail
    if facts.attempts > 1:
        attempt_ns = facts.finished_ns - (facts.started_ns or facts.finished_ns)
        attrs["attempt"] = facts.attempts - 1
        attrs["backoff_s"] = (attempt_ns - facts.execution_ns) * 1e-9
    fields.setdefault("outcome", VERDICTS[facts.status])
    fields.setdefault("reason", facts.reason.value)
    if facts.version_end is not None:
        fields["version_end"] = facts.version_end
    types.hosted.record(span, facts.finished_ns, span_status_of(facts.status))
