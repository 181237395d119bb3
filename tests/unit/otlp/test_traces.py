from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollscope.model.kinds import Status
from rollscope.otlp.answering import Form, Signal
from tests.unit.otlp.desk import NOW_NS, Desk, pairs, span

DAY_NS = 24 * 3600 * 10**9


def take_json(desk: Desk, spans: list[dict[str, Any]]) -> Any:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "json"}}]}
    parts = [{"scope": {"name": "s"}, "spans": spans}]
    body = msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": parts}]})
    return msgspec.json.decode(desk.receiver.take(Signal.TRACES, Form.JSON, body))


def json_span(**fields: Any) -> dict[str, Any]:
    return {
        "traceId": "9C1F5F0F6BE34D0AA3B1C2D3E4F50617",
        "spanId": "00f1e2d3c4b5a697",
        "name": "x",
        "startTimeUnixNano": str(NOW_NS),
        "endTimeUnixNano": NOW_NS + 5,
        **fields,
    }


# Times


def test_times_are_kept_to_the_nanosecond() -> None:
    desk = Desk()
    desk.take(span("x", 1, start=NOW_NS - 7, end=NOW_NS - 6))
    (one,) = desk.spans()
    assert (one.start_ns, one.end_ns) == (NOW_NS - 7, NOW_NS - 6)


def test_a_span_that_ends_before_it_starts_has_no_length_and_a_mark() -> None:
    desk = Desk()
    desk.take(span("x", 1, start=NOW_NS, end=NOW_NS - 5))
    (one,) = desk.spans()
    assert one.end_ns == one.start_ns == NOW_NS
    assert (one.attrs["clock_suspect"], one.attrs["source_end_ns"]) == (True, NOW_NS - 5)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (0, 0),
        (5, 6),
        (2**63, 2**63 + 1),
        (2**64 - 1, 2**64 - 1),
        (NOW_NS, NOW_NS + 2 * DAY_NS),
        (2**63, 0),
    ],
)
def test_times_of_no_wall_clock_are_refused_and_all_else_is_kept(start: int, end: int) -> None:
    desk = Desk()
    answer = desk.take(span("bad", 1, start=start, end=end), span("good", 2))
    assert [one.attrs.get("source_name", one.name) for one in desk.spans()] == ["good"]
    assert b"Left out 1 spans: has " in answer


# Attributes


def test_known_attributes_get_our_names_and_others_keep_theirs() -> None:
    desk = Desk()
    attrs = {
        "gen_ai.usage.prompt_tokens": 9,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": "34",
        "gen_ai.response.finish_reasons": ["stop", "length"],
        "gen_ai.latency.time_in_queue": 0.25,
        "weird key": [1, "two", 3.5, True],
        "blob": b"\x01\xff",
    }
    desk.take(span("x", 1, attrs=attrs))
    kept = {key: value for key, value in desk.spans()[0].attrs.items() if key != "source_name"}
    assert kept == {
        "tokens_in": 12,
        "tokens_out": 34,
        "finish": "stop",
        "queue_s": 0.25,
        "weird key": [1, "two", 3.5, True],
        "blob": "01ff",
    }


def test_long_values_are_cut_and_their_number_is_bounded() -> None:
    desk = Desk()
    many = {f"k{number}": number for number in range(500)}
    desk.take(
        span("x" * 10_000, 2, 1, attrs={"text": "ü" * 100_000, "list": ["y" * 9_000], **many})
    )
    (one,) = desk.spans()
    assert len(one.name.encode()) <= 512
    assert len(one.attrs["text"].encode()) <= 4096
    assert len(one.attrs["list"].encode()) <= 4096
    assert len(one.attrs) <= 130


def test_what_was_said_is_kept_only_where_that_is_asked_for() -> None:
    said = {"gen_ai.input.messages": '[{"role": "user"}]', "input.value": "plain text"}
    shy, open_minded = Desk(), Desk(keeps_content=True)
    for desk in (shy, open_minded):
        desk.take(span("x", 2, 1, attrs=said))
        assert desk.spans()[0].attrs == {}
    assert all(not log.payloads for log in shy.logs.values())
    (log,) = open_minded.logs.values()
    assert {payload.name: payload.text for payload in log.payloads} == {
        "gen_ai.input.messages": '[{"role": "user"}]',
        "input.value": '"plain text"',
    }


def test_links_are_kept() -> None:
    desk = Desk()
    linked = span("x", 2, 1)
    linked.links.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
    linked.links.add(trace_id=b"short", span_id=b"x")
    desk.take(linked)
    expected = "00-000102030405060708090a0b0c0d0e0f-0001020304050607-01"
    assert desk.spans()[0].attrs["links"] == [expected]


# Endings


@pytest.mark.parametrize(
    ("said", "status", "outcome"),
    [
        ("completed", Status.OK, None),
        ("archived", Status.OK, "accepted"),
        ("FILTERED", Status.OK, "rejected"),
        ("failed", Status.ERROR, "failed"),
        ("timed_out", Status.ERROR, "timeout"),
        ("expired", Status.OK, "dropped"),
        ("aborted", Status.CANCELLED, "cancelled"),
        ("never heard of", Status.OK, None),
    ],
)
def test_what_a_session_says_of_its_end_counts(said: str, status: Status, outcome: Any) -> None:
    desk = Desk()
    desk.take(span("x", 1, attrs={"xtuner.status": said, "xtuner.rollout_id": 1}))
    (one,) = desk.spans()
    assert (one.status, one.outcome) == (status, outcome)
    assert one.attrs.get("source_status", said) == said


def test_an_exception_is_the_reason_of_a_failure_and_else_an_event() -> None:
    desk = Desk()
    spans = [span("failed", 2, 1, status={"code": 2}), span("went on", 3, 1)]
    for one in spans:
        said = {"exception.type": "KeyError", "exception.message": "'a'"}
        one.events.add(name="exception", time_unix_nano=NOW_NS, attributes=pairs(said))
        one.events.add(name="retry", time_unix_nano=2**63)
    desk.take(*spans)
    failed, went_on = desk.named("failed"), desk.named("went on")
    assert (failed.status, failed.reason) == (Status.ERROR, "KeyError: 'a'")
    assert (went_on.status, went_on.attrs["error.type"]) == (Status.OK, "KeyError")
    told = [(event.name, event.parent_id) for event in desk.events()]
    assert told == [
        ("retry", failed.span_id),
        ("exception", went_on.span_id),
        ("retry", went_on.span_id),
    ]
    assert {event.time_ns for event in desk.events()} <= {NOW_NS, failed.start_ns, went_on.start_ns}


def test_a_cancelled_error_is_a_cancellation() -> None:
    desk = Desk()
    desk.take(span("x", 2, 1, status={"code": 2}, attrs={"error.type": "CancelledError"}))
    assert desk.spans()[0].status is Status.CANCELLED


def test_a_reward_becomes_a_fact_of_the_session() -> None:
    desk = Desk()
    scored = span("judge", 3, 1)
    score = pairs({"gen_ai.evaluation.score.value": 0.5})
    scored.events.add(name="gen_ai.evaluation.result", time_unix_nano=NOW_NS, attributes=score)
    consumed = span("reward", 2, 1, attrs={"reward.score": "0.75", "consumed_step": 9})
    desk.take(span("root", 1), consumed, scored)
    assert {fact.span_id for fact in desk.facts()} == {f"{1:016x}"}
    assert [fact.facts for fact in desk.facts()] == [
        {"reward": 0.75, "consumed_step": 9},
        {"reward": 0.5},
    ]


# What is left out, and what is forgiven


def test_bad_ids_are_left_out_and_counted() -> None:
    desk = Desk()
    bad = [span("x", 1, trace=bytes(16)), span("x", 2, trace=b"short"), span("x", 0)]
    answer = desk.take(*bad, span("good", 4, 3))
    assert len(desk.spans()) == 1
    assert b"Left out 3 spans: has no valid trace and span id (3)." in answer


def test_json_is_read_as_it_is_found_in_the_wild() -> None:
    desk = Desk()
    odd = json_span(
        traceId="nB9fD2vjTQqjscLT5PUGFw==",
        spanId="APHi08S1ppg=",
        parentSpanId="APHi08S1ppc=",
        kind="SPAN_KIND_CLIENT",
        status={"code": "STATUS_CODE_ERROR", "message": "no"},
        attributes=[
            {"key": "i", "value": {"intValue": "12"}},
            {"key": "d", "value": {"doubleValue": "NaN"}},
            {"key": "m", "value": {"kvlistValue": {"values": [{"key": "a", "value": {}}]}}},
            {"key": "b", "value": {"bytesValue": "AQI="}},
        ],
        futureField={"x": [1]},
    )
    assert take_json(desk, [json_span(), odd]) == {}
    first, second = desk.spans()
    assert first.trace_id == second.trace_id == "9c1f5f0f6be34d0aa3b1c2d3e4f50617"
    assert second.parent_id == first.span_id == "00f1e2d3c4b5a697"
    assert (second.status, second.reason, second.category) == (Status.ERROR, "no", "comm")
    assert (second.attrs["i"], second.attrs["m"], second.attrs["b"]) == (12, {"a": None}, "0102")


@pytest.mark.parametrize(
    "wrong",
    [
        {"traceId": "xyz"},
        {"traceId": "0" * 32},
        {"spanId": ""},
        {"spanId": "zz" * 8},
        {"parentSpanId": "abc"},
        {"attributes": "no list"},
        {"name": 5},
    ],
)
def test_a_bad_span_in_json_is_left_out_alone(wrong: dict[str, Any]) -> None:
    desk = Desk()
    answer = take_json(desk, [json_span(**wrong), json_span()])
    assert len(desk.spans()) == 1
    assert answer["partialSuccess"]["rejectedSpans"] == "1"
    assert answer["partialSuccess"]["errorMessage"].startswith("Left out 1 spans: ")
