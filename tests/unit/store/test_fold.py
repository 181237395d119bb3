from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rollscope.model.kinds import Kind, Outcome, Status
from rollscope.model.records import DropRecord, FactRecord, ProcessRecord, Record, SpanRecord
from rollscope.store.fold import Folded, fold, read_run
from tests.builders import (
    EPOCH,
    SECOND,
    dead_header,
    make_batch,
    make_columns,
    make_header,
    make_row,
    records_of,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path


def span(status: Status, kind: Kind = Kind.SESSION, span_id: int = 1, **attrs: Any) -> SpanRecord:
    row = make_row(span_id, "s", kind=kind, status=status, attrs=attrs)
    (record,) = records_of(make_batch(spans=make_columns(row)))
    assert isinstance(record, SpanRecord)
    return record


def fact(time_ns: int, span_id: int = 1, **facts: Any) -> FactRecord:
    return FactRecord(
        process="p", trace_id="t", span_id=f"{span_id:016x}", time_ns=time_ns, facts=facts
    )


OPEN, ENDED, LOST = span(Status.OPEN, a=1), span(Status.OK, a=2), span(Status.LOST, a=1)


@pytest.mark.parametrize("order", list(itertools.permutations([OPEN, ENDED, OPEN, LOST, ENDED])))
def test_an_end_is_final_in_whatever_order_records_come(order: tuple[Record, ...]) -> None:
    folded = fold(order)
    assert list(folded.spans.values()) == [ENDED]


@pytest.mark.parametrize("order", list(itertools.permutations([OPEN, LOST, OPEN])))
def test_a_lost_span_does_not_open_again(order: tuple[Record, ...]) -> None:
    (record,) = fold(order).spans.values()
    assert record.status is Status.LOST


def test_facts_are_applied_in_order_of_their_time() -> None:
    facts = [fact(3, reward=0.3, late=1), fact(1, reward=0.1, a=9), fact(2, reward=0.2)]
    records: list[Record] = [ENDED, *facts]
    for order in itertools.permutations(records):
        (record,) = fold([copy(r) for r in order]).spans.values()
        assert record.attrs == {"a": 9, "reward": 0.3, "late": 1}


def copy(record: Record) -> Record:
    return msgspec.structs.replace(record)


def test_a_late_verdict_sets_outcome_reason_and_version() -> None:
    verdict = fact(1, outcome="rejected", reason="stale", version_end=9, reward=0.5)
    (record,) = fold([copy(ENDED), verdict]).spans.values()
    assert (record.outcome, record.reason, record.version_end) == (Outcome.REJECTED, "stale", 9)
    assert record.attrs == {"a": 2, "reward": 0.5}


def test_an_outcome_of_something_else_than_a_session_is_an_attribute() -> None:
    phase = span(Status.OK, kind=Kind.PHASE)
    (record,) = fold([phase, fact(1, outcome="rejected", reason="r")]).spans.values()
    assert record.outcome is None
    assert record.attrs == {"outcome": "rejected", "reason": "r"}


@pytest.mark.parametrize("odd", ["glorious", 7, None, ["accepted"], {}])
def test_an_outcome_that_is_none_of_ours_is_an_attribute(odd: object) -> None:
    (record,) = fold([copy(ENDED), fact(1, outcome=odd)]).spans.values()
    assert record.outcome is None
    assert record.attrs["outcome"] == odd


def test_a_verdict_with_a_reason_or_version_of_the_wrong_type_keeps_them_as_attributes() -> None:
    verdict = fact(1, outcome="accepted", reason=7, version_end="nine")
    (record,) = fold([copy(ENDED), verdict]).spans.values()
    assert record.outcome is Outcome.ACCEPTED
    assert (record.reason, record.version_end) == (None, None)
    assert record.attrs == {"a": 2, "reason": 7, "version_end": "nine"}


def test_folding_changes_no_record_that_it_was_given() -> None:
    given = span(Status.OK, a=1)
    fold([given, fact(1, outcome="accepted", b=2)])
    assert (given.outcome, given.attrs) == (None, {"a": 1})


def test_facts_of_a_span_that_is_not_known_yet_wait_for_it() -> None:
    folded = Folded()
    folded.add(fact(1, reward=1.0))
    folded.apply_facts()
    folded.add(span(Status.OK))
    folded.apply_facts()
    assert folded.spans[f"{1:016x}"].attrs == {"reward": 1.0}


def test_facts_survive_the_end_that_comes_after_them() -> None:
    folded = Folded()
    folded.add(span(Status.OPEN))
    folded.add(fact(1, reward=1.0, outcome="accepted"))
    folded.apply_facts()
    folded.add(span(Status.OK, a=1))
    folded.apply_facts()
    record = folded.spans[f"{1:016x}"]
    assert record.attrs == {"a": 1, "reward": 1.0}
    assert record.outcome is Outcome.ACCEPTED


def test_the_last_drop_counts_of_a_process_are_kept() -> None:
    records = [
        DropRecord(process="p", time_ns=n, counts={"span.slow_sink": n, "x": 1}) for n in (1, 2)
    ]
    assert fold(records).drops == {"p": {"span.slow_sink": 2, "x": 1}}


def test_spans_of_a_kind_come_in_order_of_their_start() -> None:
    rows = [make_row(n, f"s{n}", start_ns=(9 - n) * SECOND) for n in range(1, 5)]
    folded = fold(records_of(make_batch(spans=make_columns(*rows))))
    assert [span.name for span in folded.of_kind(Kind.SPAN)] == ["s4", "s3", "s2", "s1"]
    assert folded.of_kind(Kind.STEP) == []


def test_a_run_is_read_as_it_is_now(tmp_path: Path) -> None:
    rows = make_row(1, "done"), make_row(2, "hung", status=Status.OPEN)
    batches = [make_batch(0, header=dead_header()), make_batch(1, spans=make_columns(*rows))]
    write_log(tmp_path / "log" / "a.rsl", batches, tail=b"damage")
    folded = read_run(tmp_path)
    assert {s.name: s.status for s in folded.spans.values()} == {
        "done": Status.OK,
        "hung": Status.LOST,
    }
    assert [type(process) for process in folded.processes.values()] == [ProcessRecord]
    assert len(folded.problems) == 1


def test_a_live_process_keeps_its_spans_open(tmp_path: Path) -> None:
    columns = make_columns(make_row(2, "open", status=Status.OPEN))
    batches = [make_batch(0, header=make_header()), make_batch(1, spans=columns)]
    write_log(tmp_path / "log" / "a.rsl", batches)
    (record,) = read_run(tmp_path).spans.values()
    assert (record.status, record.start_ns) == (Status.OPEN, EPOCH + SECOND)
