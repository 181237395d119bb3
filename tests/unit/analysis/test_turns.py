"""The turns of a session, and what engines and versions did in it."""

from typing import Any

from rollscope.analysis.rows import SpanRow
from rollscope.analysis.turns import engine_times, find_turns, version_segments
from rollscope.model.kinds import Kind, Status

SESSION = 1
Attrs = dict[int, dict[str, Any]]


def span(span_id: int, name: str, start: int, end: int | None, **more: Any) -> SpanRow:
    more = {"parent_id": SESSION, "session_id": SESSION, "kind": Kind.PHASE, **more}
    return SpanRow(span_id=span_id, name=name, start_ns=start, end_ns=end, **more)


def numbers(spans: list[SpanRow], attrs: Attrs | None = None) -> dict[int | None, list[int]]:
    found = find_turns(SESSION, spans, attrs or {}, 100)
    return {turn.number: turn.span_ids for turn in found}


def test_recorded_turns_take_along_what_follows_them() -> None:
    spans = [
        span(2, "env", 0, 1),
        span(3, "generate", 1, 2),
        span(4, "toolcall", 2, 3),
        span(5, "generate", 3, 4),
        span(6, "reward", 4, 5),
    ]
    told = {3: {"turn": 7}, 5: {"turn": 8}}
    assert numbers(spans, told) == {None: [2], 7: [3, 4], 8: [5, 6]}
    assert not any(turn.is_counted for turn in find_turns(SESSION, spans, told, 9))


def test_without_recorded_turns_each_generation_begins_one() -> None:
    spans = [
        span(2, "env", 0, 1),
        span(3, "generate", 1, 2),
        span(4, "toolcall", 2, 3),
        span(5, "generate", 3, None),
    ]
    assert numbers(spans) == {None: [2], 0: [3, 4], 1: [5]}
    assert find_turns(SESSION, spans, {}, 9)[-1].end_ns is None


def test_generations_side_by_side_are_one_turn() -> None:
    spans = [span(2, "generate", 0, 5), span(3, "generate", 1, 4), span(4, "generate", 5, 6)]
    assert numbers(spans) == {0: [2, 3], 1: [4]}


def test_a_turn_adds_up_and_counts_failures_inside() -> None:
    spans = [
        span(2, "generate", 0, 4, tokens=5),
        span(3, "toolcall", 4, 6),
        span(4, "http", 4, 5, parent_id=3, status=Status.ERROR),
    ]
    (turn,) = find_turns(SESSION, spans, {2: {"tokens_in": 11}}, 9)
    assert turn.phases == {"generate": 4, "toolcall": 2}
    assert (turn.tokens_in, turn.tokens_out, turn.errors) == (11, 5, 1)
    assert (turn.start_ns, turn.end_ns) == (0, 6)


def test_spans_that_hold_each_other_end_the_walk() -> None:
    spans = [
        span(2, "a", 0, 1, parent_id=3, status=Status.ERROR),
        span(3, "b", 0, 1, parent_id=2),
        span(4, "generate", 0, 1),
    ]
    assert numbers(spans) == {0: [4]}


def test_no_spans_make_no_turns() -> None:
    assert find_turns(SESSION, [], {}, 0) == []


def test_engine_times_are_placed_one_behind_the_other() -> None:
    second = 1_000_000_000
    spans = [span(2, "generate", 0, 10 * second)]
    found = engine_times(spans, {2: {"queue_s": 2, "ttft_s": 3.0}})
    assert [(one.name, one.start_ns / second, (one.end_ns or 0) / second) for one in found] == [
        ("queue", 0, 2),
        ("prefill", 2, 3),
        ("decode", 3, 10),
    ]
    assert all(one.is_derived and one.span_id == 2 for one in found)


def test_engine_times_do_not_outlast_their_generation() -> None:
    spans = [span(2, "generate", 0, 1_000_000_000)]
    found = engine_times(spans, {2: {"queue_s": 5.0, "prefill_s": 1.0, "decode_s": 9.0}})
    assert [(one.name, one.end_ns) for one in found] == [("queue", 1_000_000_000)]


def test_engine_spans_go_before_told_lengths() -> None:
    spans = [span(2, "generate", 0, 9), span(3, "prefill", 1, 2, parent_id=2)]
    (one,) = engine_times(spans, {2: {"queue_s": 1e-9}})
    assert (one.name, one.start_ns, one.end_ns, one.is_derived, one.span_id) == (
        "prefill",
        1,
        2,
        False,
        2,
    )


def test_odd_engine_attributes_say_nothing() -> None:
    spans = [span(2, "generate", 0, 9), span(3, "generate", 9, None)]
    odd: Attrs = {2: {"queue_s": "long", "ttft_s": True, "decode_s": -1}, 3: {"queue_s": 1}}
    assert engine_times(spans, odd) == []


def test_versions_come_from_the_generations_in_order() -> None:
    spans = [
        span(4, "generate", 5, 6, version=3, tokens=9),
        span(2, "generate", 0, 4),
        span(3, "toolcall", 4, 5, version=2),
    ]
    told: Attrs = {2: {"versions": {"1": 10, "2": 5}}, 4: {}}
    found = version_segments(spans, told)
    assert [(one.span_id, one.version, one.tokens, one.is_part) for one in found] == [
        (2, 1, 10, True),
        (2, 2, 5, True),
        (4, 3, 9, False),
    ]


def test_odd_versions_are_left_out() -> None:
    spans = [span(2, "generate", 0, 4)]
    for odd in ("7", [1, 2], [[None, 1]], {"x": 1}, [[True, 1]]):
        assert version_segments(spans, {2: {"versions": odd}}) == []
