"""What panels show is the same from DuckDB and from ClickHouse."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollscope.answers.durations import durations
from rollscope.answers.facets import facets
from rollscope.answers.groups import list_groups
from rollscope.answers.scatter import scatter
from rollscope.answers.scope import StepScope, known_steps
from rollscope.answers.services import services
from rollscope.answers.sessions import list_sessions
from rollscope.answers.source import Source
from rollscope.answers.staircase import step_staircase
from rollscope.answers.tasks import list_tasks
from rollscope.answers.turns import session_turns
from rollscope.store.clickhouse.feed import feed
from rollscope.store.clickhouse.store import ClickHouseStore
from rollscope.store.clickhouse.tables import create_tables
from rollscope.store.clickhouse.transport import ChdbTransport
from rollscope.store.embedded import RunStore
from rollscope.testing import generate_run
from tests.oracle import SECOND, SHAPES, Remembering

EVERYTHING = StepScope()


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for no leaks: each of the engine's threads keeps files of its own, for good."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChdbTransport]:
    with ChdbTransport(str(tmp_path_factory.mktemp("clickhouse"))) as transport:
        create_tables(transport)
        yield transport


Panel = tuple[str, Callable[[Source], Any]]


def asked(source: Source) -> list[Panel]:
    """Give every panel, of everything, of the last step, and under filters."""
    rows = source.query("SELECT session_id FROM sessions ORDER BY status DESC, session_id LIMIT 2")
    return [
        *(panel for number in known_steps(source)[-1:] for panel in about_step(number)),
        ("services", lambda one: services(one, EVERYTHING)),
        ("groups", lambda one: list_groups(one, EVERYTHING)),
        ("facets", lambda one: facets(one, EVERYTHING, "phase:toolcall")),
        ("facets of nothing", lambda one: facets(one, EVERYTHING, "reward>99 -phase:absent")),
        ("scatter", lambda one: scatter(one, EVERYTHING, "attr.absent:none")),
        ("tasks", lambda one: list_tasks(one, EVERYTHING, "", "-retries")),
        ("tasks of some", lambda one: list_tasks(one, EVERYTHING, "phase:toolcall")),
        ("sessions", lambda one: list_sessions(one, EVERYTHING, limit=5, offset=3)),
        *(about_session(f"{one:016x}") for one in rows["session_id"].to_pylist()),
    ]


def about_step(number: int) -> list[Panel]:
    scope = StepScope(number, number)
    return [
        ("services of a step", lambda one: services(one, scope)),
        ("durations of a step", lambda one: durations(one, scope)),
        ("staircase", lambda one: step_staircase(one, number)),
    ]


def about_session(name: str) -> Panel:
    return "turns", lambda one: session_turns(one, name)


def plain(value: Any) -> Any:
    """Give an answer with numbers rounded: engines add fractions up in orders of their own."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize("name", ["overlapping", "running"])
def test_both_engines_show_the_same(name: str, engine: ChdbTransport, tmp_path: Path) -> None:
    truth = generate_run(tmp_path / name, SHAPES[name])
    with RunStore(tmp_path / name, threads=1, now_ns=truth.end_ns + SECOND) as store:
        feed(store, engine, name)
        embedded, shared = Remembering(store), Remembering(ClickHouseStore(engine, name))
        for panel, ask in asked(embedded):
            found, wanted = (plain(msgspec.to_builtins(ask(one))) for one in (shared, embedded))
            assert found == wanted, panel
