"""The columns of sessions that are as most are, made without a look at each of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.instrument.bulk import are_plain_numbers, are_plain_texts
from rollscope.instrument.encoder import SHORT, encode_fields
from rollscope.model.batch import SpanColumns, index_column, number_column
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind
from rollscope.model.kinds import Status as SpanStatus
from rollscope.runner.sessionfacts import VERDICTS, span_status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rollscope.instrument.hosted import HostedSession
    from rollscope.model.scope import Scope
    from rollscope.runner.outcome import Reason, Status
    from rollscope.runner.sessionfacts import EndColumns
    from rollscope.runner.task import TaskOptions

__all__ = ["encode_alike", "encode_begun"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_OPEN: Final = STATUS_CODES[SpanStatus.OPEN]
_DIGITS: Final = 20
_LONG: Final = 10**_DIGITS
"""Numbers of tasks that are given may have any length."""
_encode = msgspec.msgpack.Encoder().encode


class _Scope(msgspec.Struct, array_like=True, gc=False):
    """The scope of a session as a frame keeps it, a `ScopeRow`.

    No tuple: a thousand of those at once call the garbage collector, which then looks at all that
    was begun since it last came.
    """

    trace_id: bytes
    step: int | None
    task_key: str | None
    group: str | None
    session_id: int | None
    sample: int | None


class _FirstAttrs(msgspec.Struct, gc=False):
    """The attributes of an open session: a struct is made and encoded in half the time of a map."""

    replica: str


class _UnfetchedAttrs(_FirstAttrs, gc=False):
    """The attributes of a session that has ended and waits for somebody to fetch its outcome."""

    queue_wait_s: float
    runner_wait_s: float
    execution_s: float


class _Attrs(_UnfetchedAttrs, gc=False):
    """The attributes of a session whose outcome was handed over."""

    post_wait_s: float
    total_s: float


def encode_begun(
    spans: Sequence[HostedSession], starts: Sequence[Any], traces: Sequence[bytes]
) -> SpanColumns | None:
    """Write that sessions are open; None if there are none, or what their runner was given is odd.

    Args:
        spans: Sessions that were claimed.
        starts: The `StartFacts` of each.
        traces: The trace of each.
    """
    if not spans:
        return None
    scopes = _scopes_of(spans, starts, traces)
    versions = [span.version for span in spans]
    if scopes is None or not are_plain_numbers(versions):
        return None
    count = len(spans)
    return SpanColumns(
        what=bytes([_SESSION]) * count,
        status=bytes([_OPEN]) * count,
        name=bytes(count),
        scope=index_column(list(range(count)), count),
        span_id=number_column([scope.session_id for scope in scopes]),
        parent_id=bytes(8 * count),
        start_ns=number_column([span.start_ns for span in spans]),
        end_ns=bytes(8 * count),
        names=["session"],
        scopes=scopes,
        attrs=msgspec.Raw(_encode([_FirstAttrs(start.replica) for start in starts])),
        fields={
            row: _encode_version(version)
            for row, version in enumerate(versions)
            if version is not None
        },
    )


def encode_alike(
    starts: Sequence[Any], ended: EndColumns, traces: Sequence[bytes]
) -> SpanColumns | None:
    """Write sessions; None if what their runner was given is odd.

    Args:
        starts: The `StartFacts` of each that was claimed; None for those that were read before.
        ended: How each has ended.
        traces: The trace of each that was claimed.
    """
    spans: list[HostedSession] = ended.span
    scopes = _scopes_of(spans, starts, traces)
    versions = [span.version for span in spans]
    if scopes is None or not are_plain_numbers(versions + ended.version_end):
        return None
    parents, replicas = _places_of(spans, starts, scopes)
    statuses, fields = _verdicts_of(ended, versions)
    count = len(spans)
    return SpanColumns(
        what=bytes([_SESSION]) * count,
        status=statuses,
        name=bytes(count),
        scope=index_column(list(range(count)), count),
        span_id=number_column([scope.session_id for scope in scopes]),
        parent_id=number_column(parents),
        start_ns=number_column([span.start_ns for span in spans]),
        end_ns=number_column(ended.finished_ns),
        names=["session"],
        scopes=scopes,
        attrs=_attrs_of(ended, replicas),
        fields=fields,
    )


def _scopes_of(
    spans: Sequence[HostedSession], starts: Sequence[Any], traces: Sequence[bytes]
) -> list[Any] | None:
    """Give the scope of each as a frame keeps it; None if one has to be cleaned before."""
    options: TaskOptions | None = None
    label: Any = None
    outer: Scope | None = None
    prefix, key, group, sample, step = "task/", None, None, 0, None
    scopes: list[Any] = []
    texts: list[Any] = []
    numbers: list[Any] = []
    for span, start, trace_id in zip(spans, starts, traces, strict=True):
        if start is None:
            read = _Scope(*span.scope.as_row())
            texts += (read.task_key, read.group)
            numbers += (read.step, read.sample)
            scopes.append(read)
            continue
        # What sessions share is looked at once.
        if span.settings is not options:
            options = span.settings
            key, group, sample = options.key, options.group, options.sample
            if group is not None:
                group = str(group)
                texts.append(group)
            if key is not None:
                texts.append(key)
            numbers.append(sample)
        if span.label is not label:
            label = span.label
            prefix = f"{getattr(label, '__name__', 'task')}/"
            texts.append(prefix)
        if span.outer is not outer:
            outer = span.outer
            step = outer.step
            numbers.append(step)
        number = span.number
        if not -_LONG < number < _LONG:
            return None
        scopes.append(_Scope(trace_id, step, key or f"{prefix}{number}", group, span.id, sample))
    is_plain = are_plain_texts(texts, SHORT - _DIGITS) and are_plain_numbers(numbers)
    return scopes if is_plain else None


def _places_of(
    spans: Sequence[HostedSession], starts: Sequence[Any], scopes: Sequence[Any]
) -> tuple[list[int], list[str]]:
    """Give the span around each, and the runner that it ran in."""
    parents: list[int] = []
    replicas: list[str] = []
    for span, start, scope in zip(spans, starts, scopes, strict=True):
        if start is None:
            parents.append(span.parent_id)
            replicas.append(span.attrs["replica"])
        else:
            parents.append(0)
            replicas.append(start.replica)
            span.label = scope.task_key  # who reads the session later finds it by the same name
    return parents, replicas


def _attrs_of(ended: EndColumns, replicas: Iterable[str]) -> msgspec.Raw:
    times = (
        ended.submitted_ns,
        ended.admitted_ns,
        ended.started_ns,
        ended.finished_ns,
        ended.delivered_ns,
        ended.execution_ns,
    )
    attrs = [
        _UnfetchedAttrs(
            replica,
            (admitted - submitted) * 1e-9,
            (started - admitted) * 1e-9,
            execution * 1e-9,
        )
        if delivered is None
        else _Attrs(
            replica,
            (admitted - submitted) * 1e-9,
            (started - admitted) * 1e-9,
            execution * 1e-9,
            (delivered - finished) * 1e-9,
            (delivered - submitted) * 1e-9,
        )
        for replica, submitted, admitted, started, finished, delivered, execution in zip(
            replicas, *times, strict=True
        )
    ]
    return msgspec.Raw(_encode(attrs))


def _verdicts_of(ended: EndColumns, versions: list[int | None]) -> tuple[bytes, dict[int, Any]]:
    """Give the codes of status and the fields of all, written once for those that share them."""
    given = (ended.status, ended.reason, versions, ended.version_end)
    count = len(versions)
    if all(column.count(column[0]) == count for column in given):
        first: Any = [column[0] for column in given]
        return bytes([span_status_of(first[0])]) * count, dict.fromkeys(
            range(count), _encode_fields(*first)
        )
    codes = bytes(map(span_status_of, given[0]))
    return codes, dict(enumerate(map(_encode_fields, *given)))


@lru_cache(maxsize=256)
def _encode_version(version: int) -> Any:  # noqa: ANN401  (a `Raw` in the place of a map)
    return encode_fields({"version_start": version})


@lru_cache(maxsize=256)
def _encode_fields(
    status: Status, reason: Reason, version_start: int | None, version_end: int | None
) -> msgspec.Raw:
    fields = {
        "version_start": version_start,
        "outcome": VERDICTS[status],
        "reason": reason.value,
        "version_end": version_end,
    }
    return encode_fields({key: value for key, value in fields.items() if value is not None})
