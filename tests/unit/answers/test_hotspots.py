"""Hotspots of sessions whose spans come from several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.answers.hotspots import find_hotspots
from rollscope.answers.scope import StepScope
from rollscope.model.kinds import Kind
from rollscope.model.scope import Scope
from rollscope.store.embedded import RunStore
from tests.builders import EPOCH, SECOND, make_header, make_row, span_batch, write_log

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = b"\0\0\0\0\0\0\0\2"


def write_run_of_two_processes(run: Path) -> None:
    """Write a session of 20 s that an engine in another process works for, in two phases."""
    scope = Scope(b"\x01" * 16, session_id=1)
    seconds = [(2, "generate", 1, 0, 10), (3, "judge", 1, 10, 20)]
    rows = [
        make_row(span_id, name, kind=Kind.PHASE, scope=scope, parent_id=above,
                 start_ns=(5 + start) * SECOND, end_ns=(5 + end) * SECOND)
        for span_id, name, above, start, end in seconds
    ]  # fmt: skip
    session = make_row(1, "session", kind=Kind.SESSION, scope=scope,
                       start_ns=5 * SECOND, end_ns=25 * SECOND)  # fmt: skip
    spans = [
        (101, "engine", 2, 1, 9), (102, "prefill", 101, 2, 4), (103, "engine", 3, 11, 14),
    ]  # fmt: skip
    served = [
        make_row(span_id, name, scope=scope, parent_id=above,
                 start_ns=(5 + start) * SECOND, end_ns=(5 + end) * SECOND)
        for span_id, name, above, start, end in spans
    ]  # fmt: skip
    header = make_header(role="rollout")
    write_log(run / "log" / "a.rsl", [span_batch(0, session, *rows, header=header, end="exit")])
    header = make_header(role="engine", pid=7)
    batch = span_batch(0, *served, process=ENGINE, header=header, end="exit")
    write_log(run / "log" / "b.rsl", [batch])


def test_time_in_another_process_lies_below_the_span_that_asked_for_it(tmp_path: Path) -> None:
    write_run_of_two_processes(tmp_path / "run")

    with RunStore(tmp_path / "run", now_ns=EPOCH + 60 * SECOND) as store:
        found = find_hotspots(store, StepScope()).hotspots

    assert {row.path: row.self_ns // SECOND for row in found.rows} == {
        "session": 0,
        "session / generate": 2,
        "session / generate / engine": 6,
        "session / generate / engine / prefill": 2,
        "session / judge": 7,
        "session / judge / engine": 3,
    }
    assert (found.footer.session_ns, found.footer.overlap_ns) == (20 * SECOND, 0)


@pytest.mark.parametrize("by", ["name", "host", "tool", "family"])
def test_in_every_grouping_the_session_time_counts_once(tmp_path: Path, by: str) -> None:
    write_run_of_two_processes(tmp_path / "run")

    with RunStore(tmp_path / "run", now_ns=EPOCH + 60 * SECOND) as store:
        footer = find_hotspots(store, StepScope(), by).hotspots.footer  # type: ignore[arg-type]

    assert footer.session_ns == 20 * SECOND
