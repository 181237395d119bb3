"""Following a live run: sessions that come after the build share slots as those before it do."""

from pathlib import Path

from rollscope.instrument.tracer import Tracer
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock
from rollscope.timeline import TimelineIndex
from tests.unit.timeline.oracle import check_lines, contents, stored_spans


def roll_out(tracer: Tracer, clock: FakeClock, number: int) -> None:
    """Roll out one session after the other."""
    for sample in range(number):
        with tracer.session(sample=sample), tracer.phase("generate"):
            clock.advance(0.02)
        clock.advance(0.001)


def test_sessions_that_come_and_go_between_two_looks_share_one_slot(tmp_path: Path) -> None:
    clock = FakeClock()
    tracer = Tracer(run="run", dir=str(tmp_path), clock=clock)
    with tracer.session(sample=99):
        roll_out(tracer, clock, 3)
        tracer.flush()
        with RunStore(tmp_path / "run", threads=1) as store:
            index = TimelineIndex(store, "host")
            lanes = len(index.lanes.group)
            for _ in range(3):
                roll_out(tracer, clock, 40)
                tracer.flush()
                store.refresh()
                index.extend()
            assert len(index.lanes.group) == lanes
            assert sum(contents(index).values()) == sum(stored_spans(index).values())
            check_lines(index)
    tracer.shutdown()
