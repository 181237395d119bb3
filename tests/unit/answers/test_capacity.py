"""How many sessions fit, followed while a run grows."""

from pathlib import Path

from rollscope.answers.capacity import declared_slots, known_capacity, most_at_once
from rollscope.instrument.tracer import Tracer
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock


def run_sessions(tracer: Tracer, clock: FakeClock, many: int) -> None:
    """Run so many sessions at once, and end them."""
    sessions = [tracer.session(sample=number, replica="a") for number in range(many)]
    for session in sessions:
        session.__enter__()
        clock.advance(0.1)
    for session in reversed(sessions):
        session.__exit__(None, None, None)
        clock.advance(0.1)
    tracer.flush(10)


def test_the_most_at_once_is_followed_while_the_run_grows(tmp_path: Path) -> None:
    clock = FakeClock()
    with Tracer(run="run", dir=tmp_path, clock=clock) as tracer:
        run_sessions(tracer, clock, 3)
        with RunStore(tmp_path / "run", threads=1) as store:
            assert most_at_once(store) == {"a": 3}
            run_sessions(tracer, clock, 2)
            store.refresh()
            assert most_at_once(store) == {"a": 3}
            run_sessions(tracer, clock, 5)
            store.refresh()
            assert most_at_once(store) == {"a": 5}
            assert known_capacity(store) == (5, True)
            tracer.gauge("slots", 8, pool="a")
            tracer.flush(10)
            store.refresh()
            assert declared_slots(store) == {"a": 8}
            assert known_capacity(store) == (8, False)


def test_a_run_without_sessions_has_no_capacity(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path, clock=FakeClock()) as tracer, tracer.span("work"):
        pass
    with RunStore(tmp_path / "run", threads=1) as store:
        assert known_capacity(store) == (None, False)
