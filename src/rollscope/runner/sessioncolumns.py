"""The columns of sessions that are as most are, made without a look at each of them."""

from __future__ import annotations

from functools import lru_cache
from itertools import repeat
from operator import mul, sub
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.instrument.bulk import are_plain_numbers, are_plain_texts
from rollscope.instrument.encoder import SHORT, encode_fields
from rollscope.model.batch import SpanColumns, index_column, number_column
from rollscope.model.kinds import KIND_CODES, Kind
from rollscope.runner.sessionfacts import VERDICTS, span_status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rollscope.instrument.hosted import HostedSession
    from rollscope.runner.outcome import Reason, Status
    from rollscope.runner.sessionfacts import EndColumns
    from rollscope.runner.task import TaskOptions

__all__ = ["encode_alike"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_encode = msgspec.msgpack.Encoder().encode


class _Attrs(msgspec.Struct, gc=False):
    """The attributes of a session: a struct is made and encoded in half the time of a map."""

    replica: str
    queue_wait_s: float
    runner_wait_s: float
    execution_s: float
    post_wait_s: float
    total_s: float


def encode_alike(starts: Sequence[Any], ended: EndColumns) -> SpanColumns | None:
    """Write sessions; None if what their runner was given is odd.

    Args:
        starts: The `StartFacts` of each that was claimed; None for those that were read before.
        ended: How each has ended.
    """
    spans: list[HostedSession] = ended.span
    scopes = _scopes_of(spans, starts)
    _, steps, keys, groups, ids, samples = zip(*scopes, strict=True)
    versions = [span.version for span in spans]
    whole = [*samples, *steps, *versions, *ended.version_end]
    if not are_plain_texts(keys + groups, SHORT) or not are_plain_numbers(whole):
        return None
    parents, replicas = _places_of(spans, starts, keys)
    statuses, fields = _verdicts_of(ended, versions)
    count = len(ids)
    return SpanColumns(
        what=bytes([_SESSION]) * count,
        status=statuses,
        name=bytes(count),
        scope=index_column(list(range(count)), count),
        span_id=number_column(ids),
        parent_id=number_column(parents),
        start_ns=number_column([span.start_ns for span in spans]),
        end_ns=number_column(ended.finished_ns),
        names=["session"],
        scopes=scopes,
        attrs=_attrs_of(ended, replicas),
        fields=fields,
    )


def _scopes_of(spans: Sequence[HostedSession], starts: Sequence[Any]) -> list[Any]:
    """Give the scope of each as a frame keeps it."""
    options: TaskOptions | None = None
    label, prefix, key, group, sample = None, "task/", None, None, 0
    scopes: list[Any] = []
    for span, start in zip(spans, starts, strict=True):
        if start is None:
            scopes.append(span.scope.as_row())
            continue
        if span.settings is not options:
            options = span.settings
            key, sample = options.key, options.sample
            group = None if options.group is None else str(options.group)
        if span.label is not label:
            label = span.label
            prefix = f"{getattr(label, '__name__', 'task')}/"
        name = key or f"{prefix}{span.number}"
        scopes.append((span.trace_id, span.outer.step, name, group, span.id, sample))
    return scopes


def _places_of(
    spans: Sequence[HostedSession], starts: Sequence[Any], keys: Sequence[Any]
) -> tuple[list[int], list[str]]:
    """Give the span around each, and the runner that it ran in."""
    parents: list[int] = []
    replicas: list[str] = []
    for span, start, key in zip(spans, starts, keys, strict=True):
        if start is None:
            parents.append(span.parent_id)
            replicas.append(span.attrs["replica"])
        else:
            parents.append(0)
            replicas.append(start.replica)
            span.label = key  # who reads the session later finds it by the same name
    return parents, replicas


def _attrs_of(ended: EndColumns, replicas: Iterable[str]) -> msgspec.Raw:
    columns = (
        map(sub, ended.admitted_ns, ended.submitted_ns),
        map(sub, ended.started_ns, ended.admitted_ns),
        ended.execution_ns,
        map(sub, ended.delivered_ns, ended.finished_ns),
        map(sub, ended.delivered_ns, ended.submitted_ns),
    )
    seconds = (map(mul, column, repeat(1e-9)) for column in columns)
    return msgspec.Raw(_encode(list(map(_Attrs, replicas, *seconds))))


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
