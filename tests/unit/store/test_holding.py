"""A run that is held in memory gives what it gives from disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollscope.answers.rows import MAYBE_CHARGED, session_rows, sessions_with
from rollscope.store import holding
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

_SHAPE = RunShape(steps=2, tasks_per_step=3, group_size=2, late_share=0.5, retry_share=0.5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """Give a run with late facts."""
    generate_run(tmp_path / "run", _SHAPE)
    with RunStore(tmp_path / "run", threads=1, now_ns=2_000_000_000_000_000_000) as opened:
        yield opened


@pytest.mark.parametrize("view", ["spans", "sessions", "tasks", "facts", "fact_sums", "events"])
def test_views_show_the_same_rows(store: RunStore, view: str) -> None:
    sql = f"SELECT * FROM {view} ORDER BY ALL"  # noqa: S608
    before = store.query(sql)

    with store.held():
        within = store.query(sql)

    assert before.num_rows > 0
    assert within == before
    assert store.query(sql) == before


def test_sessions_of_a_step_are_the_same(store: RunStore) -> None:
    where = "charged_step BETWEEN $first AND $last"
    before = session_rows(store, where, among=MAYBE_CHARGED, first=1, last=1)
    ids = [row.span_id for row in before[:2]]

    with store.held():
        assert session_rows(store, where, among=MAYBE_CHARGED, first=1, last=1) == before
        assert sessions_with(store, ids) == before[:2]

    assert len(before) >= 6


def test_an_equal_query_is_answered_from_memory(store: RunStore) -> None:
    sql = "SELECT count(*) AS n FROM spans WHERE step = $step"
    assert store.query(sql, step=0) is not store.query(sql, step=0)

    with store.held():
        first = store.query(sql, step=0)
        assert store.query(sql, step=0) is first
        assert store.query(sql, step=1) is not first


def test_old_results_make_room(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_MOST_BYTES", 400)

    with store.held():
        first = store.query("SELECT 1 AS n")
        assert store.query("SELECT 1 AS n") is first
        for number in range(2, 40):
            store.query(f"SELECT {number} AS n")
        again = store.query("SELECT 1 AS n")

    assert again is not first
    assert again == first


def test_a_refresh_shows_the_run_itself_again(store: RunStore) -> None:
    with store.held():
        first = store.query("SELECT count(*) AS n FROM spans")
        store.refresh()
        assert store.query("SELECT count(*) AS n FROM spans") is not first
        assert store.dialect.has_sessions is False


def test_a_large_run_stays_on_disk(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_MOST_SPANS", 1)

    with store.held():
        assert store.dialect.has_sessions is False
        first = store.query("SELECT count(*) AS n FROM sessions")
        assert store.query("SELECT count(*) AS n FROM sessions") is first
