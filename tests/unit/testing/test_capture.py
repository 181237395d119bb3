from __future__ import annotations

import pytest

import rollscope as rs
from rollscope.model.kinds import Kind
from rollscope.model.records import ProcessRecord
from rollscope.testing import FakeClock, SequentialIds, capture


def test_what_is_recorded_inside_can_be_looked_at_at_any_time() -> None:
    with capture() as run:
        with rs.span("first"):
            pass
        assert [span.name for span in run.spans()] == ["first"]
        with rs.span("second"):
            assert run.named("second").end_ns is None
        assert run.named("second").end_ns is not None
        assert [span.name for span in run.spans()] == ["first", "second"]
        assert isinstance(run.records()[0], ProcessRecord)
        assert len(run.batches()) >= 2
        assert [span.name for span in run.fold().of_kind(Kind.SPAN)] == ["first", "second"]
    assert not rs.enabled()


def test_recording_ends_with_the_block_also_when_it_fails() -> None:
    with pytest.raises(ValueError, match="no"), capture():
        raise ValueError("no")
    assert not rs.enabled()


def test_a_name_must_be_that_of_exactly_one_span() -> None:
    with capture() as run:
        for name in ("once", "twice", "twice"):
            with rs.span(name):
                pass
        assert run.named("once").name == "once"
        with pytest.raises(LookupError, match="2 spans are called 'twice'"):
            run.named("twice")
        with pytest.raises(LookupError, match="0 spans are called 'never'"):
            run.named("never")


def test_settings_are_passed_on() -> None:
    with capture(run="named", role="reward") as run:
        assert run.tracer.run == "named"
        rs.flush()
        assert run.sink.openings[0].header.role == "reward"


def test_with_fakes_two_recordings_are_equal() -> None:
    def record() -> bytes:
        clock = FakeClock()
        with capture(clock=clock, ids=SequentialIds(), run="r", drain_s=60) as run:
            rs.flush()
            with rs.step(1), rs.task("t"), rs.session():
                clock.advance(1.5)
            rs.flush()
            return b"".join(frame.data for frame in run.sink.frames)

    assert record() == record()


def test_a_fake_clock_moves_only_by_hand() -> None:
    clock = FakeClock(mono_ns=5, wall_ns=10)
    assert (clock.mono_ns(), clock.wall_ns()) == (5, 10)
    clock.advance(2)
    assert (clock.mono_ns(), clock.wall_ns()) == (2_000_000_005, 2_000_000_010)
    clock.jump(-1)
    assert (clock.mono_ns(), clock.wall_ns()) == (2_000_000_005, 1_000_000_010)
