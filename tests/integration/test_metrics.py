"""Metrics of real processes: many at once, killed, ended and started again."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    from pathlib import Path

_PROCESSES = 8
_SECOND_OF_CALLS = 50_000
_LATE_S = 2.0
"""How much later than promised the writer may come on a busy machine."""


def counted(lab: Lab, name: str) -> dict[str, float]:
    """Give what a counter adds up to, by process."""
    totals: dict[str, float] = {}
    for metric in lab.read().metrics:
        if metric.name == name:
            totals[metric.process] = totals.get(metric.process, 0) + metric.value
    return totals


def test_eight_processes_that_call_fifty_thousand_times_a_second_lose_nothing(lab: Lab) -> None:
    program = """
        import sys, time
        import rollscope as rs

        rs.init(role="rollout", rank=int(sys.argv[1]))
        began = time.monotonic()
        for part in range(20):
            for number in range(2500):
                rs.count("calls", worker=sys.argv[1], kind=f"k{number % 50}")
            time.sleep(max(began + 0.05 * part - time.monotonic(), 0))  # at that rate, no faster
    """
    started = [lab.start(program, rank) for rank in range(_PROCESSES)]
    for process in started:
        assert process.communicate(timeout=PATIENCE_S) == ("", "")

    folded = lab.read()
    assert sum(metric.value for metric in folded.metrics) == _PROCESSES * _SECOND_OF_CALLS
    assert folded.drops == {}
    # One record a series and second, whatever was called.
    assert len(folded.metrics) < _PROCESSES * _SECOND_OF_CALLS / 10


_STEADY = """
    import os, sys, time
    import rollscope as rs

    side = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rs.init()
    number = 0
    while True:
        rs.count("calls", kind="a")
        number += 1
        os.write(side, f"{number} {time.monotonic()}\\n".encode())
        time.sleep(0.001)
"""


def noted(side: Path) -> list[tuple[int, float]]:
    """Give how many calls a program had made, and when; a torn last line is left out."""
    if not side.exists():
        return []
    lines = [line.split() for line in side.read_text().split("\n")[:-1]]
    return [(int(number), float(at)) for number, at in lines]


def lasted_s(side: Path) -> float:
    """Give how long a program has been calling."""
    times = [at for _, at in noted(side)]
    return times[-1] - times[0] if times else 0.0


def test_a_killed_process_and_its_successor_count_on(lab: Lab, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    every_s = 0.3
    env = {"ROLLSCOPE_METRIC_S": str(every_s)}
    killed = lab.start(_STEADY, first, env=env)
    eventually(lambda: lasted_s(first) > 3, "three seconds of calls")
    killed.kill()
    killed.wait(PATIENCE_S)
    calls = noted(first)
    (kept,) = counted(lab, "calls").values()
    assert kept <= calls[-1][0] + 1
    promised_s = every_s + 0.2 + _LATE_S
    assert kept >= max(number for number, at in calls if at < calls[-1][1] - promised_s)

    ended = lab.start(_STEADY, second, env=env)
    eventually(lambda: len(noted(second)) > 300, "some calls")
    ended.send_signal(signal.SIGTERM)
    ended.wait(PATIENCE_S)
    made = noted(second)[-1][0]
    by_process = counted(lab, "calls")
    assert len(by_process) == 2
    assert made <= sum(by_process.values()) - kept <= made + 1
    assert lab.read().drops == {}


def test_a_flood_of_label_sets_is_bounded_and_accounted_for(lab: Lab) -> None:
    lab.finish(
        """
        import json, logging
        import rollscope as rs
        from tests.integration.misbehaviour import RssWatch

        logging.disable()
        rs.init(metric_series=100)
        rs.count("calls", id="warm up")
        rs.flush()
        watch = RssWatch()
        for number in range(200_000):
            rs.count("calls", id=f"session-{number}", kind="train")
        assert rs.flush(30)
        assert watch.growth_mb < 150, watch.growth_mb
        """
    )

    folded = lab.read()
    (drops,) = folded.drops.values()
    kept = sum(metric.value for metric in folded.metrics)
    assert kept + drops.get("metric.overload", 0) == 200_001
    assert drops["metric.series"] == sum(
        metric.count for metric in folded.metrics if metric.labels == {"series": "other"}
    )
    assert drops.keys() <= {"metric.series", "metric.overload"}
    series = {tuple(sorted(metric.labels.items())) for metric in folded.metrics}
    assert len(series) == 101
