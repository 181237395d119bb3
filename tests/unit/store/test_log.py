from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.errors import NotARunError
from rollscope.model.batch import SCHEMA_VERSION, SNAPSHOT, Batch, Heartbeat, number_column
from rollscope.model.frames import MARKER
from rollscope.model.kinds import Status
from rollscope.model.records import HeartbeatRecord, ProcessRecord, Record, SpanRecord
from rollscope.store.log import LogFollower
from tests.builders import (
    EPOCH,
    LINE,
    SECOND,
    dead_header,
    frame_of,
    make_batch,
    make_columns,
    make_header,
    make_row,
    remote_header,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path

NOW = EPOCH + 1_000_000 * SECOND


def span_batch(number: int, name: str, *, status: Status = Status.OK, span_id: int = 0) -> Batch:
    row = make_row(span_id or number + 1, name, status=status)
    return make_batch(number, mono_ns=(number + 3) * SECOND, spans=make_columns(row))


def beat(number: int, *open_ids: int) -> Batch:
    listed = Heartbeat(number_column(open_ids))
    return make_batch(number, mono_ns=(number + 3) * SECOND, heartbeat=listed)


HEADER = make_batch(0, header=make_header())
LOG = [HEADER, *(span_batch(number, f"s{number}") for number in range(1, 6))]


def names(records: list[Record]) -> list[str]:
    return [record.name for record in records if isinstance(record, SpanRecord)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "host-1-00.rsl"


# Growing


def test_a_whole_log_is_read(path: Path) -> None:
    log = LogFollower(write_log(path, LOG))
    records = list(log.poll(final=True))
    assert isinstance(records[0], ProcessRecord)
    assert names(records) == ["s1", "s2", "s3", "s4", "s5"]
    assert log.process is records[0]
    assert log.last_seen_ns == EPOCH + 8 * SECOND
    assert (log.damaged_bytes, log.problems, log.has_ended) == (0, [], False)


def test_an_empty_log_holds_nothing_yet(path: Path) -> None:
    path.touch()
    log = LogFollower(path)
    assert list(log.poll()) == []
    assert list(log.poll(final=True)) == []
    write_log(path, LOG)
    assert len(list(log.poll())) == 6


def test_what_is_added_is_read_at_the_next_poll_and_nothing_twice(path: Path) -> None:
    data = b"".join(map(frame_of, LOG))
    path.touch()
    log = LogFollower(path)
    source = random.Random(5)
    found: list[Record] = []
    with path.open("ab", buffering=0) as file:
        while data:
            size = source.randint(1, 40)
            file.write(data[:size])
            data = data[size:]
            found += log.poll()
    assert names(found) == ["s1", "s2", "s3", "s4", "s5"]
    assert log.damaged_bytes == 0


def test_the_end_of_a_log_is_noticed(path: Path) -> None:
    log = LogFollower(write_log(path, [HEADER, make_batch(1, end="exit")]))
    list(log.poll())
    assert log.has_ended


def test_a_log_larger_than_one_reading_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollscope.store import batches as module

    monkeypatch.setattr(module, "_READ_BYTES", 50)
    log = LogFollower(write_log(path, LOG))
    assert names(list(log.poll())) == ["s1", "s2", "s3", "s4", "s5"]


# Damage


def test_a_torn_end_waits_and_is_counted_in_the_end(path: Path) -> None:
    torn = frame_of(span_batch(6, "torn"))[:-1]
    log = LogFollower(write_log(path, LOG, tail=torn))
    assert names(list(log.poll())) == ["s1", "s2", "s3", "s4", "s5"]
    assert log.torn_bytes == 0
    assert list(log.poll(final=True)) == []
    assert log.torn_bytes == len(torn)
    # That is what a killed process leaves; nothing is wrong with the file.
    assert (log.damaged_bytes, log.problems) == (0, [])


def test_a_torn_frame_with_whole_ones_behind_it_is_damage(path: Path) -> None:
    torn = frame_of(span_batch(6, "torn" * 100))[:-1]
    path.write_bytes(frame_of(LOG[0]) + torn + frame_of(span_batch(7, "behind")))
    log = LogFollower(path)
    assert names(list(log.poll(final=True))) == ["behind"]
    assert (log.damaged_bytes, log.torn_bytes) == (len(torn), 0)
    assert len(log.problems) == 1
    assert str(path) in log.problems[0]


def test_damage_in_the_middle_costs_only_what_was_hit(path: Path) -> None:
    write_log(path, LOG)
    data = bytearray(path.read_bytes())
    start = len(frame_of(LOG[0])) + len(frame_of(LOG[1]))
    length = len(frame_of(LOG[2]))
    data[start + length // 2] ^= 0xFF
    path.write_bytes(data)
    log = LogFollower(path)
    assert names(list(log.poll(final=True))) == ["s1", "s3", "s4", "s5"]
    assert log.damaged_bytes == length
    assert len(log.problems) == 1


def test_bytes_that_were_torn_out_or_put_in_cost_only_their_frame(path: Path) -> None:
    frames = [frame_of(batch) for batch in LOG]
    path.write_bytes(frames[0] + frames[1][10:] + frames[2] + b"intruder" + frames[3] + frames[4])
    log = LogFollower(path)
    assert names(list(log.poll(final=True))) == ["s2", "s3", "s4"]
    assert log.damaged_bytes == len(frames[1]) - 10 + 8


def test_a_damaged_beginning_does_not_make_it_a_foreign_file(path: Path) -> None:
    path.write_bytes(b"\0" * 100 + b"".join(map(frame_of, LOG)))
    assert names(list(LogFollower(path).poll(final=True))) == ["s1", "s2", "s3", "s4", "s5"]


def test_a_log_that_shrank_is_told_and_read_on(path: Path) -> None:
    log = LogFollower(write_log(path, LOG))
    list(log.poll())
    write_log(path, LOG[:2])
    assert list(log.poll()) == []
    assert "shrunk" in log.problems[0]
    with path.open("ab") as file:
        file.write(frame_of(span_batch(7, "after")))
    assert names(list(log.poll())) == ["after"]
    assert len(log.problems) == 1


def test_a_frame_that_holds_no_batch_is_damage(path: Path) -> None:
    from rollscope.model.frames import pack_frame

    odd = pack_frame(b"not msgpack of ours")
    path.write_bytes(frame_of(LOG[0]) + odd + frame_of(LOG[1]))
    log = LogFollower(path)
    assert names(list(log.poll(final=True))) == ["s1"]
    assert log.damaged_bytes == len(odd)


def test_spans_that_cannot_be_read_cost_only_their_frame(path: Path) -> None:
    columns = msgspec.structs.replace(make_columns(make_row()), attrs=msgspec.Raw(b"\x90"))
    odd = make_batch(2, spans=columns)
    log = LogFollower(write_log(path, [LOG[0], LOG[1], odd, LOG[3]]))
    assert names(list(log.poll(final=True))) == ["s1", "s3"]
    assert log.damaged_bytes == len(frame_of(odd))
    assert len(log.problems) == 1


def test_a_frame_of_a_newer_schema_is_named_and_passed_over(path: Path) -> None:
    newer = make_batch(2, schema=SCHEMA_VERSION + 1)
    log = LogFollower(write_log(path, [LOG[0], LOG[1], newer, LOG[3]]))
    assert names(list(log.poll(final=True))) == ["s1", "s3"]
    assert log.damaged_bytes == 0
    assert "upgrade rollscope" in log.problems[0]


def test_frames_of_another_process_are_ignored_and_told(path: Path) -> None:
    foreign = [span_batch(number, "foreign") for number in (1, 2)]
    for batch in foreign:
        batch.process = b"\xee" * 8
    log = LogFollower(write_log(path, [*LOG[:2], *foreign, *LOG[2:]]))
    assert names(list(log.poll(final=True))) == ["s1", "s2", "s3", "s4", "s5"]
    assert log.problems == [f"{path} holds frames of another process, which are ignored"]


def test_frames_that_come_twice_count_once(path: Path) -> None:
    log = LogFollower(write_log(path, [*LOG[:3], *LOG[1:4], *LOG]))
    assert names(list(log.poll(final=True))) == ["s1", "s2", "s3", "s4", "s5"]
    assert log.problems == []


@pytest.mark.parametrize(
    "content",
    [b"{}", b"\x7fELF\x02\x01\x01", b"PAR1....", b"x" * 100, b"\n", b"R", b"RSX1" + bytes(100)],
)
def test_a_file_of_another_kind_is_refused_with_what_it_begins_with(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    log = LogFollower(path)
    if MARKER.startswith(content):
        assert list(log.poll()) == []  # may yet become one
        return
    with pytest.raises(NotARunError) as told:
        list(log.poll())
    assert str(path) in str(told.value)
    assert repr(content[:12]) in str(told.value)


# Open and lost spans


def test_open_spans_are_those_announced_and_not_ended(path: Path) -> None:
    batches = [
        HEADER,
        span_batch(1, "stays", status=Status.OPEN, span_id=10),
        span_batch(2, "ends", status=Status.OPEN, span_id=11),
        span_batch(3, "ends", span_id=11),
    ]
    log = LogFollower(write_log(path, batches))
    list(log.poll())
    assert [span.name for span in log.open_spans.values()] == ["stays"]
    assert list(log.lost_spans(NOW)) == []


@pytest.mark.parametrize(
    ("header", "last", "why"),
    [
        (dead_header(), span_batch(2, "other"), "its process died"),
        (remote_header(), span_batch(2, "other"), "its process died"),
        (make_header(), make_batch(2, mono_ns=5 * SECOND, end="exit"), "its process ended"),
    ],
    ids=["died here", "fell silent elsewhere", "ended"],
)
def test_spans_of_a_process_that_is_gone_are_lost_once(
    path: Path, header: msgspec.Struct, last: Batch, why: str
) -> None:
    opened = span_batch(1, "open", status=Status.OPEN)
    log = LogFollower(write_log(path, [make_batch(0, header=header), opened, last]))
    list(log.poll())
    (lost,) = log.lost_spans(NOW)
    assert (lost.status, lost.reason) == (Status.LOST, why)
    assert lost.end_ns == EPOCH + 5 * SECOND
    assert lost.start_ns == EPOCH + SECOND
    assert list(log.lost_spans(NOW)) == []


def test_a_process_whose_clock_was_set_is_not_taken_for_dead(path: Path) -> None:
    """It keeps its old time; what it says is as fresh as ever."""
    line = LINE._replace(jumped_ns=3600 * SECOND)
    opened = span_batch(1, "open", status=Status.OPEN)
    opened.clock = line
    log = LogFollower(write_log(path, [make_batch(0, header=remote_header()), opened]))
    list(log.poll())
    assert list(log.lost_spans(EPOCH + 3605 * SECOND)) == []
    (lost,) = log.lost_spans(EPOCH + 3700 * SECOND)
    assert lost.end_ns == EPOCH + 4 * SECOND


def test_spans_that_a_snapshot_leaves_open_are_not_lost(path: Path) -> None:
    opened = span_batch(1, "open", status=Status.OPEN)
    end = make_batch(2, mono_ns=5 * SECOND, end=SNAPSHOT)
    log = LogFollower(write_log(path, [make_batch(0, header=dead_header()), opened, end]))
    list(log.poll())
    assert log.is_over(NOW)
    assert list(log.lost_spans(NOW)) == []
    assert [span.name for span in log.open_spans.values()] == ["open"]


def test_a_record_once_given_is_not_changed_when_its_span_is_lost(path: Path) -> None:
    opened = span_batch(1, "open", status=Status.OPEN)
    log = LogFollower(write_log(path, [make_batch(0, header=dead_header()), opened]))
    (given,) = (record for record in log.poll() if isinstance(record, SpanRecord))
    (lost,) = log.lost_spans(NOW)
    assert lost.status is Status.LOST
    assert (given.status, given.end_ns, given.reason) == (Status.OPEN, None, None)


def test_a_span_of_a_process_that_is_not_known_yet_is_not_given_up(path: Path) -> None:
    log = LogFollower(write_log(path, [span_batch(1, "open", status=Status.OPEN)]))
    list(log.poll())
    assert list(log.lost_spans(NOW)) == []


def test_a_span_missing_from_two_lists_in_a_row_has_lost_its_end(path: Path) -> None:
    batches = [
        HEADER,
        span_batch(1, "lost", status=Status.OPEN, span_id=10),
        span_batch(2, "open", status=Status.OPEN, span_id=11),
        beat(3, 10, 11),
        beat(4, 11),
        make_batch(5, heartbeat=Heartbeat()),
        beat(6, 11),
        beat(7, 11),
    ]
    log = LogFollower(write_log(path, batches))
    records = list(log.poll())
    (lost,) = (r for r in records if isinstance(r, SpanRecord) and r.status is Status.LOST)
    assert (lost.name, lost.reason) == ("lost", "its end was not recorded")
    # It was last known to live before the first list that did not have it.
    assert lost.end_ns == EPOCH + 7 * SECOND
    beats = [r for r in records if isinstance(r, HeartbeatRecord)]
    assert records.index(lost) == records.index(beats[3]) - 1
    assert list(log.open_spans) == [f"{11:016x}"]


def test_a_span_missing_from_one_list_only_is_not_lost(path: Path) -> None:
    batches = [
        HEADER,
        span_batch(1, "open", status=Status.OPEN, span_id=10),
        beat(2),
        beat(3, 10),
        beat(4),
        beat(5, 10),
    ]
    log = LogFollower(write_log(path, batches))
    records = list(log.poll())
    assert all(r.status is not Status.LOST for r in records if isinstance(r, SpanRecord))


def test_an_end_between_two_lists_is_an_end(path: Path) -> None:
    batches = [
        HEADER,
        span_batch(1, "ends", status=Status.OPEN, span_id=10),
        beat(2),
        span_batch(3, "ends", span_id=10),
        beat(4),
    ]
    log = LogFollower(write_log(path, batches))
    statuses = [r.status for r in log.poll() if isinstance(r, SpanRecord)]
    assert statuses == [Status.OPEN, Status.OK]
