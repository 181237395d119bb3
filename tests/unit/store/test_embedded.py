from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import StoreError
from rollscope.model.batch import Fact
from rollscope.model.kinds import Kind, Status
from rollscope.model.scope import Scope
from rollscope.store import embedded as module
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run
from tests.builders import (
    EPOCH,
    SECOND,
    make_batch,
    make_event,
    make_header,
    make_row,
    span_batch,
    write_log,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = EPOCH + 100 * SECOND
SESSION = Scope(b"\x07" * 16, 3, "math/1", "g", 5, 2)


def session(span_id: int = 5, **changes: Any) -> tuple[Any, ...]:
    given = {"kind": Kind.SESSION, "scope": SESSION, "fields": {"outcome": "accepted"}}
    return make_row(span_id, "session", **{**given, **changes})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    batches = [
        make_batch(0, header=make_header(role="rollout", rank=1), drops={"span.overload": 4}),
        span_batch(
            1,
            session(attrs={"reward": 0.5}),
            make_row(6, "generate", kind=Kind.PHASE, parent_id=5, scope=SESSION),
            make_row(7, "hangs", status=Status.OPEN),
            make_event(8, "publish", attrs={"version": 2}),
        ),
        make_batch(
            2,
            mono_ns=9 * SECOND,
            facts=[
                Fact(bytes(16), 5, 8 * SECOND, {"outcome": "rejected", "reason": "b", "reward": 2}),
                Fact(bytes(16), 5, 7 * SECOND, {"outcome": "timeout", "reason": "a"}),
                Fact(bytes(16), 5, 9 * SECOND, {"consumed_step": 4}),
                Fact(bytes(16), 99, 9 * SECOND, {"outcome": "failed"}),
            ],
        ),
    ]
    write_log(tmp_path / "run" / "log" / "a.rsl", batches)
    return tmp_path / "run"


@pytest.fixture
def store(run: Path) -> Iterator[RunStore]:
    with RunStore(run, now_ns=NOW, threads=1) as store:
        yield store


def rows(store: RunStore, sql: str, **values: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = store.query(sql, **values).to_pylist()
    return found


@pytest.mark.parametrize("is_sealed", [False, True])
def test_views_show_spans_with_late_facts(store: RunStore, *, is_sealed: bool) -> None:
    if is_sealed:
        assert store.seal()
    (found,) = rows(store, "SELECT * FROM sessions")
    assert (found["session_id"], found["status"], found["task_key"]) == (5, "ok", "math/1")
    assert (found["outcome"], found["reason"], found["reward"]) == ("rejected", "b", 2.0)
    assert (found["step"], found["consumed_step"], found["charged_step"]) == (3, 4, 4)
    assert found["consumed_ns"] == EPOCH + 9 * SECOND
    assert (found["pool"], found["family"], found["duration_ns"]) == ("rollout 1", "math", SECOND)
    assert rows(store, "SELECT name, version FROM events") == [{"name": "publish", "version": 2}]
    assert rows(store, "SELECT count(*) AS n FROM facts") == [{"n": 4}]
    assert rows(store, "SELECT what, count FROM drops") == [{"what": "span.overload", "count": 4}]


def test_open_spans_are_among_the_others(store: RunStore) -> None:
    found = rows(store, "SELECT name, status, end_ns FROM spans WHERE status = 'open'")
    assert found == [{"name": "hangs", "status": "open", "end_ns": None}]
    assert rows(store, "SELECT status, open_spans FROM processes") == [
        {"status": "alive", "open_spans": 1}
    ]


def test_refreshing_shows_what_was_added(run: Path, store: RunStore) -> None:
    assert not store.refresh()
    ended = span_batch(3, make_row(7, "hangs"))
    with (run / "log" / "a.rsl").open("ab") as file:
        from tests.builders import frame_of

        file.write(frame_of(ended))
    assert store.refresh()
    assert rows(store, "SELECT status FROM spans WHERE span_id = 7") == [{"status": "ok"}]


def test_values_are_bound_and_never_part_of_the_query(store: RunStore) -> None:
    sql = "SELECT span_id FROM spans WHERE name = $name"
    assert rows(store, sql, name="generate") == [{"span_id": 6}]
    assert rows(store, sql, name="' OR 1 = 1 --") == []


def test_a_reader_that_leaves_seals_what_is_worth_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunStore(run, now_ns=NOW).close()
    assert not list(run.glob("segments/*.parquet"))
    monkeypatch.setattr(module, "_WORTH_KEEPING", 1)
    RunStore(run, now_ns=NOW).close()
    assert list(run.glob("segments/*.parquet"))


def test_a_run_that_was_never_written_to_is_empty(tmp_path: Path) -> None:
    with RunStore(tmp_path, now_ns=NOW) as store:
        assert rows(store, "SELECT * FROM spans") == []
        assert rows(store, "SELECT * FROM sessions") == []
        assert store.problems == []


def test_a_path_with_quotes_is_a_path(tmp_path: Path) -> None:
    run = tmp_path / "it's a 'run'; --"
    write_log(run / "log" / "a.rsl", [span_batch(0, make_row(1))])
    with RunStore(run, now_ns=NOW) as store:
        assert store.seal()
        assert rows(store, "SELECT span_id FROM spans") == [{"span_id": 1}]


def test_segments_that_vanish_while_a_reader_is_there_are_read_again(
    run: Path, store: RunStore
) -> None:
    store.seal()
    before = rows(store, "SELECT * FROM spans ORDER BY span_id")
    for path in run.glob("segments/*.parquet"):
        path.unlink()
    assert rows(store, "SELECT * FROM spans ORDER BY span_id") == before
    assert any("is damaged" in problem for problem in store.problems)


def test_a_generated_run_holds_what_is_true_of_it(tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", RunShape(clock_offsets_s=()))
    with RunStore(tmp_path / "run", now_ns=truth.end_ns + SECOND, threads=1) as store:
        for _ in range(2):
            found = rows(store, "SELECT kind, count(*) AS n FROM spans GROUP BY kind")
            assert {row["kind"]: row["n"] for row in found} == truth.spans
            assert store.seal()


def test_threads_may_ask_at_once(store: RunStore) -> None:
    answers: list[int] = []

    def ask() -> None:
        for _ in range(20):
            store.refresh()
            answers.append(rows(store, "SELECT count(*) AS n FROM spans")[0]["n"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [3] * 80


def test_a_question_that_makes_no_sense_is_not_taken_for_damage(store: RunStore) -> None:
    with pytest.raises(Exception, match="nowhere") as caught:
        store.query("SELECT * FROM nowhere")
    assert not isinstance(caught.value, StoreError) or "cannot be read" not in str(caught.value)
