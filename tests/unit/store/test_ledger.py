from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollscope.model.batch import SNAPSHOT, Batch, Fact, Metric, Stack
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import Kind, MetricType, Status
from rollscope.store.ledger import Ledger
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.openspan import CAUSE_COLUMNS, open_table
from rollscope.store.paths import PathTable
from tests.builders import (
    EPOCH,
    PROCESS,
    SECOND,
    list_batch,
    make_batch,
    make_columns,
    make_event,
    make_header,
    make_row,
    span_batch,
)

Row = dict[str, Any]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(LedgerState(process=PROCESS), PathTable())


def take(ledger: Ledger, *batches: Batch, table: str = "spans") -> list[Row]:
    taken, errors = ledger.take(batches)
    assert errors == []
    return [row for part in taken.tables.get(table, []) for row in part.to_pylist()]


def restored(ledger: Ledger) -> Ledger:
    """Give the ledger that another reader makes of what was stored."""
    stored = msgspec.msgpack.encode(ledger.to_state())
    return Ledger(msgspec.msgpack.decode(stored, type=LedgerState), PathTable())


def open_rows(ledger: Ledger, now_s: float = 100, *, is_alive: bool = True) -> list[Row]:
    spans, fates = ledger.open_spans(EPOCH + int(now_s * SECOND), is_alive=is_alive)
    rows: list[Row] = open_table([ledger.process] * len(spans), spans, fates).to_pylist()
    return rows


def span(span_id: int, start_s: float, end_s: float = 0, parent_id: int = 0, **more: Any) -> Any:
    status = more.pop("status", Status.OK if end_s else Status.OPEN)
    times: dict[str, Any] = {"start_ns": int(start_s * SECOND), "end_ns": int(end_s * SECOND)}
    return make_row(span_id, f"s{span_id}", status=status, parent_id=parent_id, **times, **more)


@pytest.mark.parametrize("is_alive", [True, False])
def test_causes_are_the_open_rows_in_few_columns(ledger: Ledger, is_alive: bool) -> None:
    take(ledger, span_batch(0, span(3, 2), span(2, 1, parent_id=9), span(4, 1, parent_id=3)))
    causes = ledger.open_causes(is_alive=is_alive).to_pylist()
    assert len(causes) == 3
    rows = open_rows(ledger, is_alive=is_alive)
    assert causes == [{name: row[name] for name in CAUSE_COLUMNS} for row in rows]


# Ends and starts


def test_a_span_that_ended_is_final(ledger: Ledger) -> None:
    (row,) = take(ledger, span_batch(0, span(7, 1, 3, kind=Kind.PHASE, attrs={"tool": "python"})))
    assert (row["span_id"], row["parent_id"], row["process"]) == (7, None, 1)
    assert (row["start_ns"], row["end_ns"]) == (EPOCH + SECOND, EPOCH + 3 * SECOND)
    assert (row["kind"], row["status"], row["name"], row["path"]) == ("phase", "ok", "s7", "s7")
    assert (row["detail"], row["attrs"]) == ("python", '{"tool":"python"}')
    assert open_rows(ledger) == []


def test_a_span_that_started_is_open_until_its_end_comes(ledger: Ledger) -> None:
    assert take(ledger, span_batch(0, span(1, 1))) == []
    (shown,) = open_rows(ledger)
    assert (shown["status"], shown["end_ns"], shown["reason"]) == ("open", None, None)
    (row,) = take(ledger, span_batch(1, span(1, 1, 5)))
    assert row["status"] == "ok"
    assert open_rows(ledger) == []
    assert ledger.state.spans == 1


def test_start_and_end_in_one_batch_are_one_span(ledger: Ledger) -> None:
    assert len(take(ledger, span_batch(0, span(1, 1), span(1, 1, 2)))) == 1
    assert open_rows(ledger) == []
    assert ledger.state.spans == 1


def test_a_frame_that_came_before_counts_no_more(ledger: Ledger) -> None:
    batch = span_batch(3, span(1, 1, 2))
    assert len(take(ledger, batch, batch)) == 1
    assert take(ledger, batch) == []
    assert ledger.missing_frames == 3


def test_frames_with_payloads_leave_no_gap(ledger: Ledger) -> None:
    for number in (-1, 0, -2, 1):
        take(ledger, span_batch(number, span(number + 9, 1, 2)))
    assert ledger.missing_frames == 0


def test_a_start_that_comes_after_the_end_opens_nothing(ledger: Ledger) -> None:
    assert len(take(ledger, span_batch(2, span(1, 1, 5)))) == 1
    assert take(ledger, span_batch(1, span(1, 1))) == []
    assert open_rows(ledger) == []


def test_a_batch_with_unreadable_attributes_is_told_and_left_out(ledger: Ledger) -> None:
    bad = span_batch(0, span(1, 1, 2))
    assert bad.spans is not None
    bad.spans.attrs = msgspec.Raw(msgspec.msgpack.encode([1]))
    taken, (error,) = ledger.take([bad, span_batch(1, span(2, 1, 2))])
    assert "attributes" in str(error)
    assert taken.tables["spans"][0]["span_id"].to_pylist() == [2]


def test_an_open_span_with_unreadable_attributes_does_not_fail_the_reader(ledger: Ledger) -> None:
    bad = span_batch(0, span(1, 1))
    assert bad.spans is not None
    bad.spans.attrs = msgspec.Raw(msgspec.msgpack.encode([1]))
    ledger.take([bad])
    assert all(row["attrs"] == "{}" for row in open_rows(ledger))


@pytest.mark.parametrize("outcome", ["unheard of", 3, ["accepted"]])
def test_an_unknown_outcome_is_told(ledger: Ledger, outcome: object) -> None:
    row = span(1, 1, 2, kind=Kind.SESSION, fields={"outcome": outcome})
    _, (error,) = ledger.take([span_batch(0, row)])
    assert "outcome" in str(error)


# Spans that never end


def test_a_span_missing_from_two_lists_is_lost_since_the_first(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 1), span(2, 1), at_s=2))
    assert take(ledger, list_batch(1, 10, 2)) == []
    assert [row["status"] for row in open_rows(ledger)] == ["open", "open"]
    (lost,) = take(ledger, list_batch(2, 20, 2))
    assert (lost["span_id"], lost["status"], lost["end_ns"]) == (1, "lost", EPOCH + 10 * SECOND)
    assert lost["reason"] == "its end was not recorded"
    assert [row["span_id"] for row in open_rows(ledger)] == [2]
    assert ledger.state.lost == 1


def test_an_end_that_comes_after_the_loss_does_not_double_the_span(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 1)), list_batch(2, 10), list_batch(3, 20))
    assert take(ledger, span_batch(1, span(1, 1, 5))) == []
    assert take(restored(ledger), span_batch(4, span(1, 1, 5))) == []


def test_what_is_open_when_the_log_ends_is_lost(ledger: Ledger) -> None:
    (row,) = take(ledger, span_batch(0, span(1, 1)), make_batch(1, mono_ns=9 * SECOND, end="exit"))
    assert (row["status"], row["reason"]) == ("lost", "its process ended")
    assert row["end_ns"] == EPOCH + 9 * SECOND


def test_what_is_open_at_the_end_of_a_snapshot_stays_open(ledger: Ledger) -> None:
    end = make_batch(1, mono_ns=9 * SECOND, end=SNAPSHOT)
    assert take(ledger, span_batch(0, span(1, 1)), end) == []
    for account in (ledger, restored(ledger)):
        (row,) = open_rows(account, is_alive=False)
        assert (row["status"], row["end_ns"], row["reason"]) == ("open", None, None)
        (cause,) = account.open_causes(is_alive=False).to_pylist()
        assert cause["end_ns"] is None


def test_what_is_open_when_the_process_dies_shows_as_lost_and_may_still_end(
    ledger: Ledger,
) -> None:
    take(ledger, span_batch(0, span(1, 1), at_s=4))
    (row,) = open_rows(ledger, is_alive=False)
    assert (row["status"], row["end_ns"]) == ("lost", EPOCH + 4 * SECOND)
    assert row["reason"] == "its process died"
    assert len(take(ledger, span_batch(1, span(1, 1, 5)))) == 1


# Paths and self times


def test_paths_lead_through_open_and_ended_parents(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 1), span(2, 2, parent_id=1), at_s=3))
    rows = take(ledger, span_batch(1, span(3, 3, 4, parent_id=2), span(2, 2, 5, parent_id=1)))
    table = PathTable()
    two = table.below(table.below(0, "s1"), "s2")
    three = table.below(two, "s3")
    assert [row["path"] for row in rows] == [table.paths[two], table.paths[three]]


def test_a_path_begins_anew_at_a_session(ledger: Ledger) -> None:
    rows = take(
        ledger,
        span_batch(0, span(2, 1, 2, parent_id=1, kind=Kind.SESSION), span(1, 1, 3, kind=Kind.TASK)),
    )
    assert [(row["path"], row["parent_path"]) for row in rows] == [("s2", "s1"), ("s1", "")]


def test_a_child_that_outlives_its_parent_keeps_its_path(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 1, 3), span(2, 2, parent_id=1), at_s=3))
    (row,) = take(restored(ledger), span_batch(1, span(2, 2, 9, parent_id=1)))
    assert row["parent_path"] == "s1"
    assert row["overlap_ns"] == 6 * SECOND  # what is left of it when its parent is over


def test_a_child_of_a_lost_parent_keeps_its_path(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 1), span(2, 2, parent_id=1), at_s=3))
    take(ledger, list_batch(1, 10, 2), list_batch(2, 20, 2))
    (row,) = take(ledger, span_batch(3, span(2, 2, 25, parent_id=1)))
    assert row["parent_path"] == "s1"
    assert row["overlap_ns"] == 15 * SECOND


@pytest.mark.parametrize("is_restored", [False, True])
def test_siblings_that_overlap_count_once_however_they_come(
    ledger: Ledger, *, is_restored: bool
) -> None:
    parent = span(1, 0.5)
    rows = take(ledger, span_batch(0, parent, span(2, 1, parent_id=1), span(3, 2, 4, 1), at_s=4))
    ledger = restored(ledger) if is_restored else ledger
    rows += take(ledger, span_batch(1, span(2, 1, 6, 1), span(4, 5, 7, 1)))
    added = sum(row["end_ns"] - row["start_ns"] - row["overlap_ns"] for row in rows)
    assert added == 6 * SECOND  # from 1 to 7


def test_a_lost_sibling_counts_once_too(ledger: Ledger) -> None:
    take(ledger, span_batch(0, span(1, 0.5), span(2, 1, parent_id=1), span(3, 2, 0, 1), at_s=3))
    rows = take(ledger, list_batch(1, 10, 1, 3), list_batch(2, 20, 1, 3))
    rows += take(ledger, span_batch(3, span(3, 2, 12, 1)))
    added = sum(row["end_ns"] - row["start_ns"] - row["overlap_ns"] for row in rows)
    assert added == 11 * SECOND  # from 1 to 12


# Everything else a process says


def test_events_facts_metrics_and_stacks_are_given_out(ledger: Ledger) -> None:
    batch = make_batch(
        0,
        mono_ns=5 * SECOND,
        spans=make_columns(make_event(9, "publish", attrs={"version": 4})),
        facts=[Fact(bytes(16), 1, 4 * SECOND, {"outcome": "rejected", "reason": "why"})],
        metrics=[Metric(MetricType.COUNTER, "n", {"a": "b"}, 2.0)],
        stacks=[Stack(1, 3 * SECOND, "task", ["a.py:1 f"])],
    )
    taken, _ = ledger.take([batch])
    (event,) = taken.tables["events"][0].to_pylist()
    assert (event["event_id"], event["name"], event["version"]) == (9, "publish", 4)
    (fact,) = taken.tables["facts"][0].to_pylist()
    assert (fact["span_id"], fact["outcome"], fact["reason"]) == (1, "rejected", "why")
    assert fact["time_ns"] == EPOCH + 4 * SECOND
    (metric,) = taken.tables["metrics"][0].to_pylist()
    assert (metric["name"], metric["value"], metric["time_ns"]) == ("n", 2.0, EPOCH + 5 * SECOND)
    (stack,) = taken.tables["stacks"][0].to_pylist()
    assert (stack["task"], stack["frames"]) == ("task", '["a.py:1 f"]')


def test_a_fact_is_a_verdict_only_with_a_known_outcome(ledger: Ledger) -> None:
    facts = [{"outcome": "odd", "reason": "r", "version_end": 3}, {"reason": "r", "reward": 0.5}]
    batch = make_batch(facts=[Fact(bytes(16), 1, SECOND, each) for each in facts])
    rows = take(ledger, batch, table="facts")
    assert [(r["outcome"], r["reason"], r["version_end"]) for r in rows] == [(None, None, None)] * 2
    assert [r["reward"] for r in rows] == [None, 0.5]


def test_times_follow_the_clock_line_in_force(ledger: Ledger) -> None:
    later = ClockLine(10 * SECOND, EPOCH + 10 * SECOND, 1_000_000)
    batch = make_batch(1, mono_ns=30 * SECOND, clock=later, spans=make_columns(span(1, 20, 25)))
    (row,) = take(ledger, make_batch(0), batch)
    assert row["start_ns"] == EPOCH + 20 * SECOND + SECOND // 100
    assert row["end_ns"] - row["start_ns"] == 5 * SECOND


def test_a_long_silence_is_noted(ledger: Ledger) -> None:
    take(ledger, make_batch(0, header=make_header()), make_batch(1, mono_ns=60 * SECOND))
    assert ledger.state.silences == [(EPOCH + SECOND, EPOCH + 60 * SECOND)]


def test_the_account_goes_on_where_it_was_stored(ledger: Ledger) -> None:
    header = make_batch(0, header=make_header(), drops={"span.overload": 3})
    take(ledger, header, span_batch(1, span(1, 1)))
    again = restored(ledger)
    assert again.state.header == ledger.state.header
    assert again.state.drops == {"span.overload": 3}
    assert open_rows(again) == open_rows(ledger)
    assert take(again, header) == []
    assert len(take(again, span_batch(2, span(1, 1, 2)))) == 1
