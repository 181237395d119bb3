"""What the exporter writes, the receiver reads: the same spans and points, in both forms."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.metrics.buckets import ZERO_BUCKET
from rollscope.model.kinds import MetricType
from rollscope.otlp import jsonform, jsonmetrics, protobuf, protometrics
from rollscope.otlp.export import jsonwire, wire
from rollscope.otlp.export.spans import SCOPE_NAME
from rollscope.otlp.forms import EventForm, PointForm, Sender, SpanForm

SENDERS = [Sender({"service.name": name, "process.pid": 7}, key=name) for name in ("a", "b")]
FORMS = [(wire, protobuf, protometrics), (jsonwire, jsonform, jsonmetrics)]

words = st.text(min_size=1, max_size=12)
ids = st.integers(1, 2**64 - 1)
times = st.integers(1, 2**63 - 1)
plain = st.one_of(
    st.text(max_size=20),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)
values = st.one_of(plain, st.lists(plain, max_size=3), st.dictionaries(words, plain, max_size=2))
attributes = st.dictionaries(words, values, max_size=5)


@st.composite
def span_forms(draw: st.DrawFn) -> SpanForm:
    links = [f"00-{draw(ids):032x}-{draw(ids):016x}-01" for _ in range(draw(st.integers(0, 2)))]
    has_failed = draw(st.booleans())
    return SpanForm(
        sender=draw(st.sampled_from(SENDERS)),
        scope=SCOPE_NAME,
        trace_id=draw(st.binary(min_size=16, max_size=16).filter(any)),
        span_id=draw(ids),
        parent_id=draw(st.integers(0, 2**64 - 1)),
        name=draw(words),
        kind=draw(st.integers(1, 5)),
        start_ns=draw(times),
        end_ns=draw(times),
        attrs=draw(attributes),
        status=2 if has_failed else 0,
        message=draw(words) if has_failed else "",
        tracestate=draw(st.sampled_from(["", "rollscope=r:x"])),
        events=[EventForm(draw(words), draw(times), draw(attributes))],
        links=links,
    )


def shown(form: SpanForm) -> dict[str, Any]:
    fields = {name: getattr(form, name) for name in form.__struct_fields__}
    # The flags of a link are not ours to keep.
    links = [link.rpartition("-")[0] for link in form.links]
    return {**fields, "sender": form.sender.attrs, "links": links}


@pytest.mark.parametrize(("writer", "reader"), [(w, r) for w, r, _ in FORMS])
@given(forms=st.lists(span_forms(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_the_receiver_reads_the_spans_that_the_exporter_wrote(
    writer: Any, reader: Any, forms: list[SpanForm]
) -> None:
    request = reader.read_traces(writer.encode_traces(forms))
    assert not request.rejected
    assert not request.lenient
    expected = sorted(forms, key=lambda form: form.sender.key or "")
    assert [shown(form) for form in request.spans] == [shown(form) for form in expected]


counts = st.dictionaries(
    st.one_of(st.just(ZERO_BUCKET), st.integers(-80, 80)), st.integers(1, 1000), max_size=5
)


@st.composite
def point_forms(draw: st.DrawFn) -> PointForm:
    kind = draw(st.sampled_from(list(MetricType)))
    buckets = draw(counts) if kind is MetricType.HISTOGRAM else {}
    return PointForm(
        sender=SENDERS[0],
        type=kind,
        name=f"{kind}_{draw(st.sampled_from('ab'))}",
        labels=draw(st.dictionaries(words, words, max_size=2)),
        time_ns=draw(times),
        start_ns=0 if kind is MetricType.GAUGE else draw(times),
        value=draw(st.floats(0, 1e12)),
        count=sum(buckets.values()),
        buckets=buckets,
    )


@pytest.mark.parametrize(("writer", "reader"), [(w, r) for w, _, r in FORMS])
@given(points=st.lists(point_forms(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_the_receiver_reads_the_points_that_the_exporter_wrote(
    writer: Any, reader: Any, points: list[PointForm]
) -> None:
    request = reader.read_metrics(writer.encode_metrics(points))
    assert not request.rejected
    assert len(request.points) == len(points)
    for found, told in zip(request.points, sorted(points, key=by_name), strict=True):
        assert (found.name, found.type, found.labels) == (told.name, told.type, told.labels)
        assert (found.time_ns, found.start_ns) == (told.time_ns, told.start_ns)
        assert math.isclose(found.value, told.value)
        if told.type is MetricType.HISTOGRAM:
            assert (found.count, found.buckets) == (told.count, told.buckets)
        assert not found.is_difference


def by_name(point: PointForm) -> tuple[str, str]:
    return point.name, str(point.type)
