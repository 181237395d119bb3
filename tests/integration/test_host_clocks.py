"""Hosts whose clocks are apart, read over real requests, and drawn alike by both engines."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from rollscope.answers.doctor import examine
from rollscope.answers.health import health
from rollscope.answers.stuck import stuck
from rollscope.store.clickhouse.feed import feed
from rollscope.store.clickhouse.store import ClickHouseStore
from rollscope.store.clickhouse.tables import create_tables
from rollscope.store.clickhouse.transport import ChdbTransport
from rollscope.store.embedded import RunStore
from rollscope.store.views import VIEWS
from rollscope.timeline.lookup import find_span
from rollscope.timeline.spanindex import SpanIndex
from tests.builders import EPOCH, SECOND
from tests.collecting_server import TOKEN
from tests.integration.support import PATIENCE_S, Lab, eventually
from tests.skewedhosts import (
    FAR,
    HUB,
    MS,
    HostClock,
    SimProcess,
    SimSpan,
    calls,
    read_often,
    write_readings,
    write_spans,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = EPOCH + 700 * SECOND
BEHIND_S = 0.35

_PROGRAM = """
    import os, sys, time
    import rollscope as rs

    here = os.uname()
    os.uname = lambda: os.uname_result((here.sysname, "elsewhere", *here[2:]))

    class Behind:
        mono_ns = staticmethod(time.perf_counter_ns)

        def wall_ns(self):
            return time.time_ns() - 350_000_000

    with rs.Tracer(clock=Behind(), drain_s=0.02) as tracer:
        for line in sys.stdin:
            began_ns = time.time_ns()
            with tracer.span(line.strip()):
                pass
            assert tracer.flush()
            print(began_ns, flush=True)
"""


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for no leaks: each of the engine's threads keeps files of its own, for good."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run of two hosts, 350 ms and 50 ppm apart."""
    source = random.Random(1)
    trainer = SimProcess(1, HUB, HostClock(), role="trainer")
    rollout = SimProcess(2, FAR, HostClock(-350 * MS, -50))
    spans = [*calls(trainer, rollout, 600, source, 50), SimSpan(900, rollout, 0, 650 * SECOND)]
    write_spans(tmp_path / "run", [trainer, rollout], spans)
    write_readings(tmp_path / "run", 9, read_often(rollout, 600, source))
    return tmp_path / "run"


@pytest.fixture
def store(run: Path) -> Iterator[RunStore]:
    with RunStore(run, threads=1, now_ns=NOW) as opened:
        yield opened


def test_both_engines_move_times_alike(store: RunStore, tmp_path: Path) -> None:
    with ChdbTransport(str(tmp_path / "clickhouse")) as engine:
        create_tables(engine)
        feed(store, engine, "run")
        shared = ClickHouseStore(engine, "run")
        for view in (*VIEWS, "processes"):
            ours, theirs = (one.query(f"SELECT * FROM {view}") for one in (store, shared))  # noqa: S608
            assert ours.schema.names == theirs.schema.names
            assert ours.schema.types == theirs.schema.types
            assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
        since = EPOCH + 300 * SECOND
        assert store.lengths(["work"], since) == shared.lengths(["work"], since)
        assert stuck(store) == stuck(shared)


def test_the_timeline_draws_what_the_views_say_and_finds_it_again(store: RunStore) -> None:
    index = SpanIndex(store, "host")
    rows = store.query("SELECT start_ns, end_ns FROM spans").to_pylist()
    drawn = [
        (int(start), int(end))
        for part in index.parts
        for start, end in zip(part.start, part.end, strict=True)
    ]
    assert sorted(drawn) == sorted((row["start_ns"], row["end_ns"]) for row in rows)
    part = index.parts[0]
    for line, (lane, row) in enumerate(zip(part.line_lane, part.line_row, strict=True)):
        place = int(part.bounds[line])
        found = find_span(index, int(lane), int(row), int(part.start[place]))
        assert found.start_ns == part.start[place]


def test_the_correction_is_told_with_its_drift_and_error(store: RunStore) -> None:
    far = next(clock for clock in health(store).clocks if clock.host == FAR)
    assert (far.source, far.readings) == ("round trips", 120)
    assert 370 * MS < far.offset_ns < 385 * MS
    assert 45 < far.drift_ppm < 55
    (finding,) = [one for one in examine(store).findings if one.check == "clocks"]
    expected = r"The clock of far is 38\d ms behind and drifts 50 ppm; its times were moved, right "
    assert re.fullmatch(expected + r"within \d\.\d ms\.", finding.sentence)


def test_a_real_server_reads_the_clock_of_a_program_that_is_behind(
    lab: Lab, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(f"{TOKEN}\n")
    words = ("view", "--dir", lab.run.parent, "--port", "0", "--token-file", token)
    server = lab.launch(lab.command(*words))
    assert server.stdout is not None
    port = re.search(r"127\.0\.0\.1:(\d+)/", server.stdout.readline())
    assert port is not None
    program = lab.start(
        _PROGRAM,
        env={
            "ROLLSCOPE_SINK": f"http://127.0.0.1:{port[1]}/?token={TOKEN}",
            "ROLLSCOPE_SPOOL_DIR": str(tmp_path / "spools"),
            "ROLLSCOPE_DIR": str(tmp_path / "unused"),
        },
    )
    said, err = program.communicate("one\ntwo\nthree\n", timeout=PATIENCE_S)
    assert not err
    began = dict(zip(("one", "two", "three"), map(int, said.split()), strict=True))

    sql = "SELECT offset_ns, offset_error_ns FROM processes WHERE offset_source = 'round trips'"
    with RunStore(lab.run, threads=1) as store:
        eventually(lambda: store.refresh() and store.query(sql).num_rows, "the clock is read")
        (told,) = store.query(sql).to_pylist()
        rows = store.query("SELECT name, start_ns FROM spans").to_pylist()
    assert abs(told["offset_ns"] - BEHIND_S * SECOND) <= told["offset_error_ns"] + MS
    slack_ns = told["offset_error_ns"] + 2 * MS
    assert {row["name"] for row in rows} == set(began)
    for row in rows:
        assert -slack_ns <= row["start_ns"] - began[row["name"]] < SECOND // 4
