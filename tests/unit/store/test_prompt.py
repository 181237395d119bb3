from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.errors import QueryError
from rollscope.store.embedded import RunStore
from rollscope.store.prompt import SHOWN, Prompt
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHAPE = RunShape(steps=1, tasks_per_step=4, group_size=2, rollout_processes=2, slots=8)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "it's a run"
    generate_run(path, SHAPE)
    return path


@pytest.fixture(scope="module")
def prompt(run: Path) -> Iterator[Prompt]:
    with RunStore(run) as store:
        store.seal()
        with Prompt(store, threads=1) as prompt:
            yield prompt


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,hunter2\n")
    return file


def value(prompt: Prompt, sql: str) -> object:
    (answer,) = prompt.ask(sql)
    return answer.table[0][0].as_py()


def test_sealed_and_open_spans_are_both_there(run: Path, prompt: Prompt) -> None:
    with RunStore(run) as store:
        expected = store.query("SELECT count(*) AS n FROM spans")["n"][0].as_py()
    assert value(prompt, "SELECT count(*) FROM spans") == expected > 0
    assert value(prompt, "SELECT count(*) FROM spans WHERE status = 'lost'") != 0


@pytest.mark.parametrize("view", SHOWN)
def test_every_view_can_be_read(prompt: Prompt, view: str) -> None:
    (answer,) = prompt.ask(f"SELECT * FROM {view}", max_rows=2)  # noqa: S608
    assert answer.table.num_columns > 2


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE spans",
        "SHOW TABLES",
        "SUMMARIZE steps",
        "FROM steps",
        "VALUES (1)",
        "TABLE steps",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
        "EXPLAIN SELECT * FROM spans",
        "EXPLAIN ANALYZE SELECT count(*) FROM spans",
        "EXPLAIN /* ü */ (FORMAT json) SELECT 1",
        "SELECT * FROM range(3)",
        "SELECT unnest([1, 2])",
        "SELECT * FROM duckdb_settings()",
        "-- a comment\nSELECT 1 /* and; another */;",
    ],
)
def test_what_reads_the_run_is_allowed(prompt: Prompt, sql: str) -> None:
    (answer,) = prompt.ask(sql)
    assert answer.table.num_rows


@pytest.mark.parametrize(
    "sql",
    [
        "COPY spans TO '{out}'",
        "COPY (SELECT 1) TO '{out}' (FORMAT parquet)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
        "EXPLAIN ANALYZE COPY spans TO '{out}'",
        "EXPORT DATABASE '{out}'",
        "ATTACH '{out}' AS other",
        "EXPLAIN ATTACH '{out}' AS other",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TEMP TABLE t AS SELECT 1",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        "CREATE VIEW spans AS SELECT 1",
        "CREATE MACRO id(x) AS 1",
        "DROP VIEW spans",
        "INSERT INTO processes VALUES (1)",
        "EXPLAIN ANALYZE DELETE FROM processes",
        "WITH a AS (INSERT INTO processes VALUES (1) RETURNING 1) SELECT * FROM a",
        "UPDATE processes SET pid = 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 1",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        "PRAGMA database_list",
        "CALL enable_logging()",
        "CALL enable_profiling(save_location = '{out}.txt')",
        "SELECT * FROM enable_profiling(save_location = '{out}.txt')",
        "SELECT * FROM enable_logging(storage = 'file', storage_path = '{out}')",
        "SELECT 1 WHERE EXISTS (FROM enable_profiling())",
        "EXPLAIN PIVOT (FROM enable_profiling()) ON a IN (SELECT 1)",
        "BEGIN; COMMIT",
        "ROLLBACK",
        "CHECKPOINT",
        "USE memory",
        "PREPARE a AS SELECT 1",
        "SELECT 1; COPY spans TO '{out}'",
        "SELECT 1 /* ; */; -- harmless\nCOPY spans TO '{out}'",
        "/* SELECT */ COPY spans TO '{out}'",
        "SELECT * FROM arrow_scan(1::POINTER, 1::POINTER, 1::POINTER)",
        "SELECT * FROM pandas_scan(1::POINTER)",
        "SELECT * FROM query('SELECT * FROM read_te' || 'xt(''{secret}'')')",
        "SELECT getenv('HOME')",
    ],
)
def test_what_writes_or_changes_anything_is_refused(
    prompt: Prompt, tmp_path: Path, secret: Path, sql: str
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(QueryError):
        prompt.ask(sql.format(out=tmp_path / "out", secret=secret))
    assert sorted(tmp_path.iterdir()) == before
    assert value(prompt, "SELECT count(*) FROM spans") != 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{secret}'",
        'SELECT * FROM "{secret}"',
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_csv_auto('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM main.read_text('{secret}')",
        "SELECT * FROM system.main.read_text('{secret}')",
        "SELECT * FROM \"read_text\"('{secret}')",
        "SELECT * FROM READ_BLOB('{secret}')",
        "SELECT * FROM read_json('{secret}')",
        "SELECT * FROM read_parquet('{secret}')",
        "SELECT * FROM parquet_metadata('{secret}')",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT * FROM read_duckdb('{secret}')",
        "SELECT * FROM glob('{secret}')",
        "DESCRIBE FROM read_text('{secret}')",
        "SUMMARIZE FROM glob('/*')",
        "EXPLAIN ANALYZE SELECT * FROM read_text('{secret}')",
        "WITH a AS (FROM read_text('{secret}')) FROM a",
        "SELECT (SELECT content FROM read_text('{secret}'))",
        "SELECT * FROM spans, LATERAL (SELECT * FROM read_text('{secret}'))",
        "SELECT * FROM steps UNION ALL BY NAME SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM query_table('{secret}')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM 'https://localhost:1/a.parquet'",
    ],
)
def test_no_other_file_can_be_read(prompt: Prompt, secret: Path, sql: str) -> None:
    with pytest.raises(QueryError) as refused:
        prompt.ask(sql.format(secret=secret))
    assert "hunter2" not in str(refused.value)


def test_variables_of_the_program_cannot_be_read(prompt: Prompt) -> None:
    import pyarrow as pa

    hidden = pa.table({"a": ["hunter2"]})
    with pytest.raises(QueryError, match="hidden"):
        prompt.ask("SELECT * FROM hidden")
    assert hidden.num_rows == 1


def test_the_engine_alone_keeps_the_files_apart(
    prompt: Prompt, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "_check", lambda statement: None)
    for sql in (
        f"FROM read_text('{secret}')",
        f"COPY spans TO '{secret}'",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "INSTALL httpfs",
    ):
        with pytest.raises(QueryError):
            prompt.ask(sql)
    assert secret.read_text() == "a,b\n1,hunter2\n"


def test_ids_can_be_written_and_read(prompt: Prompt) -> None:
    assert value(prompt, "SELECT id_text(200::UBIGINT)") == "00000000000000c8"
    assert value(prompt, "SELECT id('ffffffffffffffff')") == 2**64 - 1
    assert value(prompt, "SELECT bool_and(id(id_text(span_id)) = span_id) FROM spans") is True


def test_an_answer_is_cut_where_asked_and_says_so(prompt: Prompt) -> None:
    cut, whole = prompt.ask("FROM range(30000); FROM range(7)", max_rows=12_000)
    assert (cut.table.num_rows, cut.is_cut) == (12_000, True)
    assert (whole.table.num_rows, whole.is_cut) == (7, False)
    (exact,) = prompt.ask("FROM range(5)", max_rows=5)
    assert not exact.is_cut


def test_a_wrong_query_says_where(prompt: Prompt) -> None:
    with pytest.raises(QueryError, match="nope"):
        prompt.ask("SELECT nope FROM spans")
    with pytest.raises(QueryError, match="syntax error"):
        prompt.ask("SELEC 1")
    assert prompt.ask(" -- nothing") == []


def test_a_query_can_be_interrupted_and_another_asked(prompt: Prompt) -> None:
    # Who was started in the background by a shell has it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    forever = "SELECT count(*) FROM range(10000000) a, range(9000000) b WHERE a.range*b.range = 7"
    is_over = threading.Event()

    def interrupt() -> None:
        while not is_over.wait(0.01):
            if any(thread.name == "sql" for thread in threading.enumerate()):
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            prompt.ask(forever)
    finally:
        is_over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert value(prompt, "SELECT 1") == 1


def test_a_refresh_shows_what_was_added(tmp_path: Path) -> None:
    generate_run(tmp_path / "a", SHAPE)
    generate_run(tmp_path / "b", RunShape(steps=2, tasks_per_step=2, seed=5))
    with RunStore(tmp_path / "a") as store, Prompt(store) as prompt:
        before = value(prompt, "SELECT count(*) FROM processes")
        for log in (tmp_path / "b" / "log").iterdir():
            log.rename(tmp_path / "a" / "log" / f"later-{log.name}")
        prompt.refresh()
        assert value(prompt, "SELECT count(*) FROM processes") != before


def test_segments_merged_by_another_are_found_again(tmp_path: Path) -> None:
    generate_run(tmp_path / "a", SHAPE)
    with RunStore(tmp_path / "a") as store, Prompt(store) as first:
        count = value(first, "SELECT count(*) FROM spans")
        store.seal()
        with Prompt(store) as prompt:
            with RunStore(tmp_path / "a") as other:
                sealer = other.sealer
                (old,) = (s for s in sealer.manifest.segments if s.table == "spans")
                folder = tmp_path / "a" / "segments"
                (folder / "spans-new.parquet").write_bytes((folder / old.file).read_bytes())
                moved = msgspec.structs.replace(old, file="spans-new.parquet")
                others = [s for s in sealer.manifest.segments if s.table != "spans"]
                assert sealer.replace([moved, *others])
                (folder / old.file).unlink()
            assert value(prompt, "SELECT count(*) FROM spans") == count
