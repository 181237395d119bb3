"""Every answer is the same, byte by byte, from DuckDB and from ClickHouse."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rollscope.answers.scope import known_steps
from rollscope.answers.series import list_metrics, series
from rollscope.answers.source import Source
from rollscope.instrument.tracer import Tracer
from rollscope.store.clickhouse.feed import feed
from rollscope.store.clickhouse.store import ClickHouseStore
from rollscope.store.clickhouse.tables import create_tables
from rollscope.store.clickhouse.transport import ChdbTransport
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock, generate_run
from tests.oracle import SECOND, SHAPES, Question, Remembering, ask, questions


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for no leaks: each of the engine's threads keeps files of its own, for good."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChdbTransport]:
    with ChdbTransport(str(tmp_path_factory.mktemp("clickhouse"))) as transport:
        create_tables(transport)
        yield transport


def answer(source: Source, question: Question) -> bytes:
    return msgspec.json.encode(ask(source, question))


def asked(source: Source) -> list[Question]:
    """Give the questions about a run; of its sessions, one that is over and one that is not."""
    sql = "SELECT session_id, status FROM sessions ORDER BY start_ns, session_id"
    rows = source.query(sql).to_pylist()
    by_fate = {row["status"] in ("open", "lost"): row["session_id"] for row in rows}
    return list(questions(known_steps(source), list(by_fate.values())))


# The others differ from these in how much there is of everything, which is all one to an engine.
@pytest.mark.parametrize("name", sorted(SHAPES.keys() - {"usual", "long", "failed"}))
def test_both_engines_give_the_same_answers(
    name: str, engine: ChdbTransport, tmp_path: Path
) -> None:
    truth = generate_run(tmp_path / name, SHAPES[name])

    with RunStore(tmp_path / name, threads=1, now_ns=truth.end_ns + SECOND) as store:
        feed(store, engine, name)
        embedded, shared = Remembering(store), Remembering(ClickHouseStore(engine, name))
        differing = [
            question
            for question in asked(embedded)
            if answer(embedded, question) != answer(shared, question)
        ]

    assert differing == []


def test_both_engines_give_the_same_metrics_by_step_and_over_time(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    for rank in range(2):
        clock = FakeClock()
        with Tracer(run="metrics", dir=tmp_path, role="trainer", rank=rank, clock=clock) as tracer:
            for step in range(3):
                with tracer.step(step):
                    clock.advance(0.01)
                    tracer.gauge("loss", step + rank / 10)
                    tracer.observe("seconds", step + 1, kind="a")
                tracer.count("done", 2, kind="b")

    with RunStore(tmp_path / "metrics", threads=1) as store:
        feed(store, engine, "metrics")
        shared = ClickHouseStore(engine, "metrics")
        sql = "SELECT * FROM metrics ORDER BY name, process, time_ns"
        assert shared.query(sql).to_pylist() == (rows := store.query(sql).to_pylist())
        assert {row["step"] for row in rows} == {None, 0, 1, 2}
        assert list_metrics(shared) == list_metrics(store)
        for name in ("loss", "seconds", "done"):
            for axis in ("time", "step"):
                assert series(shared, name, axis) == series(store, name, axis)
        assert len(series(store, "loss", "step").lines) == 2
