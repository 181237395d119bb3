"""What `kill -9` and SIGTERM leave behind, at any moment of a program's life."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from tests.integration.support import PATIENCE_S, Lab, endings, eventually

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_DRAIN_S = 0.2
_LATE_WRITER_S = 0.25
"""The promise is one drain interval. The writer sleeps in ticks of a quarter of that, and on two
busy cores it has to wait for the interpreter lock, the processor and the disk: one more interval
and a tick."""
_AT_ONCE = 4
_KILLS = 20

_PROGRAM = """
    import os, random, sys, time
    import rollscope as rs

    side = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rng = random.Random(int(sys.argv[2]))

    class noted:
        def __init__(self, span):
            self.span = span

        def note(self, what):
            line = f"{what} {self.span.ref.span_id:016x} {time.perf_counter_ns()}\\n"
            os.write(side, line.encode())

        def __enter__(self):
            self.span.__enter__()
            self.note("entered")
            return self.span

        def __exit__(self, *error):
            self.note("leaving")
            self.span.__exit__(*error)
            self.note("left")

    def work():
        time.sleep(rng.choice((0, 0, 0, 0.001, 0.02)))

    rs.init()
    with noted(rs.step(1)):
        for number in range(1_000_000):
            with noted(rs.task(f"item/{number}")), noted(rs.session(sample=number)) as session:
                for name in ("generate", "toolcall", "reward"):
                    with noted(rs.phase(name, turn=number)), noted(rs.span("inner")):
                        work()
                session.finish("accepted", reward=1.0)
            for _ in range(rng.randrange(40)):
                with noted(rs.span("plain", category="io")):
                    pass
            work()
"""


class _Note(NamedTuple):
    what: str
    span_id: str
    at_ns: int


def _notes(side: Path) -> list[_Note]:
    """Read what a program wrote down itself; the kill may have cut the last line."""
    lines = side.read_text().split("\n")[:-1]
    return [_Note(what, span, int(at)) for what, span, at in map(str.split, lines)]


def _wait_for_first_span(side: Path) -> None:
    eventually(lambda: side.exists() and side.stat().st_size, "the first span")


def _end(program: subprocess.Popen[str], number: signal.Signals) -> int:
    """End a program by a signal; give the time of the signal."""
    at_ns = time.perf_counter_ns()
    program.send_signal(number)
    assert program.wait(PATIENCE_S) == -number
    return at_ns


def _end_at_random(lab: Lab, programs_in_all: int, number: signal.Signals) -> dict[Path, int]:
    """Start programs, some at once, and end each at a random moment; give the moments."""
    rng = random.Random(20)
    ends: dict[Path, int] = {}
    for first in range(0, programs_in_all, _AT_ONCE):
        sides = [lab.folder / f"side{n}" for n in range(first, first + _AT_ONCE)]
        programs = [lab.start(_PROGRAM, side, n) for n, side in enumerate(sides, first)]
        for side in sides:
            _wait_for_first_span(side)
        begun = time.monotonic()
        moments = sorted(rng.uniform(0.0, 1.0) for _ in programs)
        for program, side, moment in zip(programs, sides, moments, strict=True):
            time.sleep(max(begun + moment - time.monotonic(), 0))
            ends[side] = _end(program, number)
    return ends


def test_a_kill_loses_at_most_one_drain_interval_and_doubles_nothing(lab: Lab) -> None:
    kills = _end_at_random(lab, _KILLS, signal.SIGKILL)

    records = lab.cat()
    ended = endings(records)
    spans = lab.read().spans
    worst_ms = 0.0
    checked = {"left": 0, "open": 0}
    for side, killed_ns in kills.items():
        notes = _notes(side)
        sure_ns = killed_ns - int((_DRAIN_S + _LATE_WRITER_S) * 1e9)
        left = {note.span_id: note.at_ns for note in notes if note.what == "left"}
        leaving = {note.span_id for note in notes if note.what == "leaving"}
        for span_id, at_ns in left.items():
            known = spans.get(span_id)
            if known is None or known.status == "lost":
                worst_ms = max(worst_ms, (killed_ns - at_ns) / 1e6)
            if at_ns < sure_ns:
                checked["left"] += 1
                assert known is not None, f"lost, {(killed_ns - at_ns) / 1e6:.0f} ms old"
                assert known.status == "ok", f"no end, {(killed_ns - at_ns) / 1e6:.0f} ms old"
        for note in notes:
            if note.what == "entered" and note.span_id not in leaving and note.at_ns < sure_ns:
                checked["open"] += 1
                assert spans[note.span_id].status == "lost"
                assert spans[note.span_id].reason == "its process died"
    print(f"worst loss: {worst_ms:.0f} ms before the kill; checked: {checked}")  # noqa: T201
    assert max(ended.values()) == 1
    assert checked["left"] > 1000
    assert checked["open"] >= _KILLS / 2  # a program killed very early has none that is old enough


def test_all_that_a_kill_leaves_open_is_lost_and_nothing_stays_open(lab: Lab) -> None:
    side = lab.folder / "side"
    program = lab.start(_PROGRAM, side, 1)
    _wait_for_first_span(side)
    eventually(lambda: len(lab.read().spans) > 100, "spans are written")
    _end(program, signal.SIGKILL)

    records = [record for record in lab.cat() if record["record"] == "span"]
    last = {record["span_id"]: record["status"] for record in records}
    starts = [record["span_id"] for record in records if record["status"] == "open"]
    assert set(last.values()) == {"ok", "lost"}
    assert len(starts) == len(set(starts))


def test_sigterm_at_any_moment_loses_nothing_that_had_ended(lab: Lab) -> None:
    sides = _end_at_random(lab, 2 * _AT_ONCE, signal.SIGTERM)

    spans = lab.read().spans
    assert max(endings(lab.cat()).values()) == 1
    for side in sides:
        left = [note.span_id for note in _notes(side) if note.what == "left"]
        assert left
        assert {spans[span_id].status for span_id in left} == {"ok"}
        leaving = {note.span_id for note in _notes(side) if note.what == "leaving"}
        entered = {note.span_id for note in _notes(side) if note.what == "entered"}
        assert {spans[span_id].status for span_id in entered - leaving} <= {"lost"}
