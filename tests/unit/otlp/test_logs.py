from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from rollscope.model.kinds import Status
from rollscope.otlp.answering import Form, Signal
from tests.unit.otlp.desk import NOW_NS, TRACE, Desk, pairs, span


def protobuf_request(name: str, attrs: dict[str, Any], span_id: int) -> bytes:
    request = ExportLogsServiceRequest()
    owned = request.resource_logs.add()
    owned.resource.attributes.extend(pairs({"service.name": "agents"}))
    owned.scope_logs.add().log_records.add(
        event_name=name,
        trace_id=TRACE,
        span_id=span_id.to_bytes(8),
        time_unix_nano=NOW_NS,
        attributes=pairs(attrs),
    )
    return bytes(request.SerializeToString())


def json_request(name: str, attrs: dict[str, Any], span_id: int) -> bytes:
    def value(given: Any) -> dict[str, Any]:
        return {"stringValue": given} if isinstance(given, str) else {"doubleValue": given}

    record = {
        "eventName": name,
        "traceId": TRACE.hex(),
        "spanId": f"{span_id:016x}",
        "timeUnixNano": str(NOW_NS),
        "attributes": [{"key": key, "value": value(given)} for key, given in attrs.items()],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "agents"}}]}
    parts = [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]
    return msgspec.json.encode({"resourceLogs": parts})


FORMS = pytest.mark.parametrize(
    ("form", "request_of"), [(Form.PROTOBUF, protobuf_request), (Form.JSON, json_request)]
)


@FORMS
def test_an_evaluation_is_a_reward_of_the_session(form: Form, request_of: Any) -> None:
    desk = Desk()
    desk.take(span("root", 1), span("chat", 2, 1))
    score = {"gen_ai.evaluation.score.value": 0.5}
    answer = desk.receiver.take(Signal.LOGS, form, request_of("gen_ai.evaluation.result", score, 2))
    assert answer in (b"", b"{}")
    (fact,) = desk.facts()
    assert (fact.span_id, fact.facts, fact.time_ns) == (f"{1:016x}", {"reward": 0.5}, NOW_NS)


@FORMS
def test_the_start_of_a_span_is_told_by_a_record(form: Form, request_of: Any) -> None:
    desk = Desk()
    said = {"span.name": "think", "parent_span_id": f"{7:016x}"}
    desk.receiver.take(Signal.LOGS, form, request_of("span.start", said, 2))
    (one,) = desk.spans()
    assert (one.name, one.status, one.parent_id) == ("think", Status.OPEN, f"{7:016x}")
    desk.take(span("think", 2, 7))
    assert desk.named("think").status is Status.OK


@FORMS
def test_other_records_are_left_out_and_counted(form: Form, request_of: Any) -> None:
    desk = Desk()
    for body in (request_of("", {}, 0), request_of("log", {}, 3)):
        answer = desk.receiver.take(Signal.LOGS, form, body)
        assert b"Left out 1 log records: is neither" in answer
    orphan = request_of("gen_ai.evaluation.result", {"gen_ai.evaluation.score.value": 1.0}, 9)
    assert b"session that is known" in desk.receiver.take(Signal.LOGS, form, orphan)
    assert not desk.logs
