"""Where a session's time went."""

from collections.abc import Iterator

import pytest

from rollscope.analysis.sessions import PhaseTimes, SessionTimes, session_times
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.instrument.tracer import Tracer
from rollscope.model.kinds import Kind
from rollscope.testing import Capture, FakeClock, SequentialIds

MS = 1_000_000


class Recording:
    """One session on a clock that stands still until told."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        sink = MemorySink()
        self.tracer = Tracer(sink=sink, clock=self.clock, ids=SequentialIds())
        self.capture = Capture(self.tracer, sink)

    def pass_ms(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds / 1000)

    def times(self) -> SessionTimes:
        folded = self.capture.fold()
        (session,) = folded.of_kind(Kind.SESSION)
        times = session_times(session, folded.spans.values(), self.clock.wall_ns())
        parts = sum(phase.share_ns for phase in times.phases.values())
        assert parts + times.other_ns == times.total_ns
        return times


@pytest.fixture
def recording() -> Iterator[Recording]:
    recording = Recording()
    yield recording
    recording.tracer.shutdown()


def test_phases_one_after_the_other_and_the_time_between_make_the_whole(
    recording: Recording,
) -> None:
    tracer = recording.tracer
    with tracer.session():
        with tracer.phase("generate"):
            recording.pass_ms(70)
        recording.pass_ms(5)
        with tracer.phase("reward"):
            recording.pass_ms(20)
        with tracer.phase("generate"):
            recording.pass_ms(30)

    times = recording.times()

    assert times.total_ns == 125 * MS
    assert times.other_ns == 5 * MS
    assert times.phases == {
        "generate": PhaseTimes(2, 100 * MS, 100 * MS, 100 * MS),
        "reward": PhaseTimes(1, 20 * MS, 20 * MS, 20 * MS),
    }


def test_overlapping_phases_of_one_name_count_once_in_the_union_and_twice_in_the_sum(
    recording: Recording,
) -> None:
    tracer = recording.tracer
    with tracer.session():
        first, second = tracer.phase("toolcall"), tracer.phase("toolcall")
        first.__enter__()
        recording.pass_ms(10)
        second.__enter__()
        recording.pass_ms(10)
        first.__exit__(None, None, None)
        recording.pass_ms(10)
        second.__exit__(None, None, None)

    times = recording.times()

    assert times.phases == {"toolcall": PhaseTimes(2, 30 * MS, 40 * MS, 30 * MS)}
    assert times.other_ns == 0


def test_a_phase_inside_another_takes_its_time_from_it(recording: Recording) -> None:
    tracer = recording.tracer
    with tracer.session(), tracer.phase("env"):
        recording.pass_ms(10)
        with tracer.span("inside"), tracer.phase("toolcall"):
            recording.pass_ms(30)

    times = recording.times()

    assert times.phases["env"] == PhaseTimes(1, 40 * MS, 40 * MS, 10 * MS)
    assert times.phases["toolcall"] == PhaseTimes(1, 30 * MS, 30 * MS, 30 * MS)


def test_open_spans_are_cut_off_now(recording: Recording) -> None:
    tracer = recording.tracer
    with tracer.session(), tracer.phase("generate"):
        recording.pass_ms(15)

        times = recording.times()

    assert times.total_ns == 15 * MS
    assert times.phases["generate"].share_ns == 15 * MS
