"""Both parsers, fed with anything: they refuse as they should, or give a bounded request."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollscope.model.batch import decode_batch, encode_batch
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.forms import OtlpError
from tests.unit.otlp.desk import NOW_NS, Desk, pairs, span, trace_request

BOUNDED = settings(
    max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)

PARTS = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "resource", "attributes", "scopeMetrics", "metrics",
     "resourceMetrics", "resourceLogs", "scopeLogs", "logRecords", "gauge", "sum", "histogram",
     "exponentialHistogram", "dataPoints", "traceId", "spanId", "parentSpanId", "name", "kind",
     "startTimeUnixNano", "endTimeUnixNano", "status", "code", "events", "links", "key", "value",
     "stringValue", "intValue", "arrayValue", "values", "kvlistValue", "bytesValue", "asInt",
     "asDouble", "bucketCounts", "explicitBounds", "scale", "positive", "offset", "timeUnixNano"]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["14f4733f3e7d1bfbc7a2ea20b2f14c94", "00f067aa0ba902b7", str(NOW_NS), NOW_NS])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PARTS, inner, max_size=5),
    max_leaves=30,
)


def take(body: bytes, form: Form) -> None:
    """Have a body taken as each signal; whatever is written can be read again."""
    for signal in Signal:
        desk = Desk()
        try:
            answer = desk.receiver.take(signal, form, body)
        except OtlpError:
            continue
        assert len(answer) < 10_000
        written = [batch for log in desk.logs.values() for batch in log.batches]
        for batch in written:
            data = encode_batch(batch)
            assert encode_batch(decode_batch(data)) == data
        assert sum(len(encode_batch(batch)) for batch in written) <= 20_000 + 20 * len(body)
        assert len(desk.records()) <= 100 + len(body)


@BOUNDED
@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_refused_or_read(body: bytes) -> None:
    take(body, Form.PROTOBUF)
    take(body, Form.JSON)


@BOUNDED
@given(ANYTHING)
def test_json_of_any_shape_is_refused_or_read(value: Any) -> None:
    for signal in ("Spans", "Metrics", "Logs"):
        inner = {"spans": [value], "metrics": [value], "logRecords": [value]}
        body = {f"resource{signal}": [{f"scope{signal}": [inner]}, value]}
        take(msgspec.json.encode(body), Form.JSON)
        body = {f"resource{signal}": [{f"scope{signal}": [inner]}]}
        take(msgspec.json.encode(body), Form.JSON)


WHOLE = trace_request(
    span("a", 1, attrs={"gen_ai.operation.name": "chat", "list": [1, [2, "x"]], "rank": 1}),
    span("b", 2, 1, status={"code": 2, "message": "no"}, trace_state="rollscope=r:x;s:1"),
).SerializeToString()


@BOUNDED
@given(
    cut=st.integers(0, len(WHOLE)),
    at=st.integers(0, len(WHOLE) - 1),
    byte=st.integers(0, 255),
    doubled=st.booleans(),
)
def test_a_damaged_request_is_refused_or_read(cut: int, at: int, byte: int, doubled: bool) -> None:
    damaged = bytearray(WHOLE)
    damaged[at] = byte
    take(bytes(damaged), Form.PROTOBUF)
    take(WHOLE[:cut], Form.PROTOBUF)
    take(WHOLE[:cut] + (WHOLE if doubled else WHOLE[at:]), Form.PROTOBUF)


VALUES = st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=40) | st.booleans()
NAMES = st.sampled_from(
    ["run.id", "rollscope.run", "session_id", "session", "sample", "rollout_n", "sample_index",
     "global_step", "step", "group_id", "rollscope.kind", "rollscope.phase", "kind",
     "gen_ai.operation.name", "openinference.span.kind", "logfire.span_type",
     "rollscope.span_type", "reward", "version", "rank", "process.pid", "experiment_name",
     "project", "xtuner.status", "status",
     "gen_ai.response.finish_reasons", "monitor.trace_segment", "state_lane_id", "consumed_step"]
)  # fmt: skip


@BOUNDED
@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 6), st.dictionaries(NAMES, VALUES, max_size=5)),
        max_size=8,
    ),
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.text(max_size=60),
)
def test_attributes_of_any_value_are_placed(
    said: list[tuple[int, int, dict[str, Any]]], resource: dict[str, Any], state: str
) -> None:
    spans = [
        span("x", number, above, attrs=attrs, trace_state=state.encode(errors="replace").decode())
        for number, above, attrs in said
    ]
    request = trace_request(*spans)
    request.resource_spans[0].resource.attributes.extend(pairs(resource))
    desk = Desk()
    desk.receiver.take(Signal.TRACES, Form.PROTOBUF, request.SerializeToString())
    told = {one.span_id for one in desk.spans()}
    is_pending = any("logfire.span_type" in attrs for _, _, attrs in said)
    assert is_pending or told >= {f"{number:016x}" for number, _, _ in said}
