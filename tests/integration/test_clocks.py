"""A wall clock that jumps: durations and order stay right, from the call to the reader."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.store.fold import read_run
from rollscope.testing import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

_SECOND = 1_000_000_000
_HOUR_S = 3600.0


@pytest.mark.parametrize("jump_s", [_HOUR_S, -_HOUR_S], ids=["forward", "back"])
def test_a_jump_of_an_hour_leaves_durations_and_order_right(tmp_path: Path, jump_s: float) -> None:
    clock = FakeClock()
    started_ns = clock.wall_ns()
    with rs.Tracer(run="run", dir=tmp_path, clock=clock) as tracer:
        for number in range(60):
            with tracer.span(f"span{number:02}"):
                clock.advance(1)
                if number == 20:
                    clock.jump(jump_s)  # in the middle of a span
                clock.advance(1)
            clock.advance(1)
            assert tracer.flush()

    spans = sorted(read_run(tmp_path / "run").spans.values(), key=lambda span: span.start_ns)
    assert [span.name for span in spans] == [f"span{number:02}" for number in range(60)]
    assert {span.duration_s for span in spans} == {2.0}
    for number, span in enumerate(spans):
        # Jumps are not followed: all times stay on the clock that the process began with.
        assert span.start_ns == started_ns + number * 3 * _SECOND


def test_drift_is_followed_within_a_millisecond_and_order_is_kept(tmp_path: Path) -> None:
    class DriftingClock(FakeClock):
        def wall_ns(self) -> int:
            return super().wall_ns() + (self.mono_ns() - _SECOND) // 10_000  # 100 ppm fast

    clock = DriftingClock()
    true_ns: list[int] = []
    with rs.Tracer(run="run", dir=tmp_path, clock=clock) as tracer:
        for number in range(720):  # two hours
            clock.advance(10)
            true_ns.append(clock.wall_ns())
            with tracer.span(f"span{number:03}"):
                pass
            assert tracer.flush()

    spans = sorted(read_run(tmp_path / "run").spans.values(), key=lambda span: span.start_ns)
    assert [span.name for span in spans] == [f"span{number:03}" for number in range(720)]
    errors_ns = [abs(span.start_ns - true) for span, true in zip(spans, true_ns, strict=True)]
    assert max(errors_ns) < 2_000_000
    assert max(errors_ns[10:]) < 1_000_000


def test_real_clocks_place_spans_where_the_wall_clock_says(tmp_path: Path) -> None:
    before_ns = time.time_ns()
    with rs.Tracer(run="run", dir=tmp_path) as tracer, tracer.span("real"):
        time.sleep(0.01)
    after_ns = time.time_ns()

    (span,) = read_run(tmp_path / "run").spans.values()
    slack_ns = 5_000_000
    assert before_ns - slack_ns <= span.start_ns
    assert span.end_ns is not None
    assert span.end_ns <= after_ns + slack_ns
    assert span.end_ns - span.start_ns >= 10_000_000
