from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollscope as rs
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.model.kinds import Kind, Status
from rollscope.model.records import Record, SpanRecord
from rollscope.store.fold import fold
from rollscope.store.log import LogFollower
from rollscope.testing import FakeClock, SequentialIds
from tests.builders import PROCESS, frame_of, make_batch, make_columns, make_header, make_row

if TYPE_CHECKING:
    from collections.abc import Iterator


def record_small_run() -> list[bytes]:
    """Record a little of everything for real and give the frames."""
    sink, clock = MemorySink(), FakeClock()
    settings = {"payloads": True, "heartbeat_s": 1.0, "drain_s": 60.0}
    with rs.Tracer(sink=sink, clock=clock, ids=SequentialIds(), **settings) as tracer:
        tracer.flush()
        with tracer.task("a/1"), tracer.session(sample=1) as session:
            with tracer.phase("generate", text="RSF1 inside"):
                clock.advance(0.3)
                tracer.flush()
            tracer.count("n")
            clock.advance(1)
            tracer.flush()
            session.finish("accepted", reward=1.0)
        tracer.annotate(session, late=True)
    return [frame.data for frame in sink.frames]


@pytest.fixture(scope="module")
def frames() -> list[bytes]:
    return record_small_run()


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "a.rsl"


def read(path: Path, *, final: bool = True) -> list[Record]:
    return list(LogFollower(path).poll(final=final))


def test_a_log_cut_at_every_byte_reads_back_to_its_last_whole_frame(
    frames: list[bytes], log_file: Path
) -> None:
    data = b"".join(frames)
    ends = list(itertools.accumulate(map(len, frames)))
    upto: dict[int, list[Record]] = {0: []}
    for whole, end in enumerate(ends, start=1):
        log_file.write_bytes(data[:end])
        upto[whole] = read(log_file)
    assert len(upto[len(frames)]) > 10
    for cut in range(len(data) + 1):
        log_file.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        for final in (False, True):
            log = LogFollower(log_file)
            assert list(log.poll(final=final)) == upto[whole]
            assert (log.damaged_bytes, log.problems) == (0, [])
        assert log.torn_bytes == cut - (ends[whole - 1] if whole else 0)


def test_a_log_cut_at_every_byte_reads_on_when_the_rest_arrives(
    frames: list[bytes], log_file: Path
) -> None:
    data = b"".join(frames)
    log_file.write_bytes(data)
    expected = read(log_file)
    for cut in range(0, len(data) + 1, 3):
        log_file.write_bytes(data[:cut])
        log = LogFollower(log_file)
        found = list(log.poll())
        log_file.write_bytes(data)
        found += log.poll(final=True)
        assert found == expected


def test_a_flipped_byte_anywhere_costs_at_most_its_frame(
    frames: list[bytes], log_file: Path
) -> None:
    data = b"".join(frames)
    starts = [0, *itertools.accumulate(map(len, frames))]
    for at in range(0, len(data), 2):
        hit = next(n for n, end in enumerate(starts[1:]) if at < end)
        log_file.write_bytes(data[: starts[hit]] + data[starts[hit + 1] :])
        expected = read(log_file)
        log_file.write_bytes(data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :])
        assert read(log_file) == expected


names = st.text(st.characters(codec="utf-8"), max_size=8)
batches = st.lists(
    st.lists(st.tuples(names, st.sampled_from([Status.OPEN, Status.OK, Status.ERROR])), max_size=4),
    min_size=1,
    max_size=6,
)


def log_frames(contents: list[list[tuple[str, Status]]]) -> list[bytes]:
    made = [make_batch(0, header=make_header())]
    ids = itertools.count(1)
    for number, spans in enumerate(contents, start=1):
        rows = [make_row(next(ids), name, status=status) for name, status in spans]
        made.append(make_batch(number, spans=make_columns(*rows)))
    return [frame_of(batch) for batch in made]


def read_bytes(data: bytes) -> Iterator[Record]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.rsl")
        path.write_bytes(data)
        yield from LogFollower(path).poll(final=True)


def spans_in(data: bytes) -> list[tuple[str, Status]]:
    return [(r.name, r.status) for r in read_bytes(data) if isinstance(r, SpanRecord)]


@given(batches, st.integers(min_value=0))
def test_any_contents_cut_anywhere_read_back_to_the_last_whole_frame(
    contents: list[list[tuple[str, Status]]], cut: int
) -> None:
    frames = log_frames(contents)
    data = b"".join(frames)
    cut %= len(data) + 1
    whole = sum(end <= cut for end in itertools.accumulate(map(len, frames)))
    expected = [span for spans in contents[: max(whole - 1, 0)] for span in spans]
    assert spans_in(data[:cut]) == expected


@given(batches, st.randoms(use_true_random=False))
def test_doubled_frames_count_once(
    contents: list[list[tuple[str, Status]]], source: random.Random
) -> None:
    frames = log_frames(contents)
    doubled = [
        frame for at in range(len(frames)) for frame in frames[: at + 1][-source.randint(1, 4) :]
    ]
    assert spans_in(b"".join(doubled)) == spans_in(b"".join(frames))


@given(batches, st.randoms(use_true_random=False))
def test_frames_out_of_order_never_yield_anything_twice_or_made_up(
    contents: list[list[tuple[str, Status]]], source: random.Random
) -> None:
    frames = log_frames(contents)
    shuffled = [*frames, *source.sample(frames, len(frames) // 2)]
    source.shuffle(shuffled)
    expected = {r.span_id: r for r in read_bytes(b"".join(frames)) if isinstance(r, SpanRecord)}
    found = [r for r in read_bytes(b"".join(shuffled)) if isinstance(r, SpanRecord)]
    assert len({r.span_id for r in found}) == len(found)
    assert all(expected[r.span_id] == r for r in found)


@given(
    batches,
    st.lists(st.tuples(st.integers(min_value=0), st.integers(1, 255)), min_size=1, max_size=10),
)
def test_random_damage_never_raises_and_yields_only_what_was_written(
    contents: list[list[tuple[str, Status]]], flips: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(log_frames(contents)))
    whole = list(read_bytes(bytes(data)))
    for at, flip in flips:
        # The very first frame is spared: a file with no marker at all is refused, and rightly.
        at = 60 + at % (len(data) - 60)
        data[at] ^= flip
    remaining = iter(whole)
    assert all(record in remaining for record in read_bytes(bytes(data)))


span_records = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from([Status.OPEN, Status.LOST, Status.OK])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60)
@given(span_records, st.randoms(use_true_random=False))
def test_folding_gives_the_same_in_any_order_of_delivery(
    contents: list[tuple[int, Status]], source: random.Random
) -> None:
    rows = [make_row(span_id, kind=Kind.PHASE, status=status) for span_id, status in contents]
    batch = make_batch(0, process=PROCESS, spans=make_columns(*rows))
    records = [r for r in read_bytes(frame_of(batch)) if isinstance(r, SpanRecord)]
    expected = {span_id: span.status for span_id, span in fold(records).spans.items()}
    source.shuffle(records)
    assert {i: span.status for i, span in fold(records * 2).spans.items()} == expected
