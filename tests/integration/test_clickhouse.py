"""ClickHouse gives what DuckDB gives: rows, nulls, types and percentiles, on the real engine."""

# ruff: noqa: S106, S608  (the passwords are made up, and so are the parts of the SQL)

import gzip
import http.server
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest

from rollscope.answers.hotspots import HotspotGrouping, find_hotspots
from rollscope.answers.phases import phases
from rollscope.answers.scope import StepScope, resolve_scope
from rollscope.answers.steps import steps
from rollscope.answers.stuck import stuck
from rollscope.cli.main import main
from rollscope.errors import QueryError, SettingError, StoreError
from rollscope.model.batch import Fact, Metric, Stack
from rollscope.model.kinds import Kind, MetricType, Status
from rollscope.store.clickhouse.address import PASSWORD_VARIABLE, connect
from rollscope.store.clickhouse.feed import Feeder, feed, follow, forget
from rollscope.store.clickhouse.store import ClickHouseStore, list_runs
from rollscope.store.clickhouse.tables import (
    ROW_TABLES,
    TABLE_SCHEMA,
    create_statements,
    create_tables,
)
from rollscope.store.clickhouse.transport import ChdbTransport, HttpTransport
from rollscope.store.dialect import Value
from rollscope.store.embedded import RunStore
from rollscope.store.views import VIEWS
from rollscope.testing import RunShape, generate_run
from tests.builders import EPOCH, SECOND, dead_header, make_batch, make_columns, make_row, write_log
from tests.unit.answers.test_hotspots import write_run_of_two_processes

NOW = EPOCH + 3600 * SECOND
HOSTILE = 'it\'s \\ "x" \t\n {run:String} $run é🎉 <script>alert(1)</script> -- ; \\N'
ALL_VIEWS = [*VIEWS, "processes", "drops"]

SHAPES = {
    "usual": RunShape(steps=3, tasks_per_step=6),
    "skewed": RunShape(seed=1, steps=2, tasks_per_step=6, clock_offsets_s=(0.0, 30.0, -45.5)),
    "dying": RunShape(seed=2, steps=2, rollout_processes=5, stuck_sessions=0),
    "stuck": RunShape(seed=3, steps=2, tasks_per_step=8, stuck_sessions=6, dying_process=False),
    "brief": RunShape(seed=4, steps=2, tasks_per_step=6, tools=("python",), max_turns=1),
    "failed": RunShape(seed=5, steps=2, tasks_per_step=6, failure_share=1.0),
    "rejected": RunShape(seed=6, steps=2, tasks_per_step=6, failure_share=0, rejected_share=1.0),
    "lonely": RunShape(seed=7, steps=1, tasks_per_step=1, group_size=1, rollout_processes=1),
    "midnight": RunShape(seed=8, steps=3, tasks_per_step=4, start_ns=1_789_948_790 * SECOND),
    "timeouts": RunShape(seed=9, steps=2, tasks_per_step=6, timeout_share=0.9, slots=2),
}


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for no leaks: each of the engine's threads keeps files of its own, for good."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChdbTransport]:
    with ChdbTransport(str(tmp_path_factory.mktemp("clickhouse"))) as transport:
        create_tables(transport)
        yield transport


def rows_of(table: pa.Table) -> list[str]:
    """Give rows in an order of their own, with NaN equal to itself and 1 unlike 1.0."""
    return sorted(map(repr, table.to_pylist()))


def assert_alike(store: RunStore, shared: ClickHouseStore, sql: str, **values: Value) -> None:
    embedded, found = store.query(sql, **values), shared.query(sql, **values)
    assert found.schema.names == embedded.schema.names
    assert found.schema.types == embedded.schema.types
    assert rows_of(found) == rows_of(embedded)


def assert_all_alike(store: RunStore, shared: ClickHouseStore) -> None:
    for view in ALL_VIEWS:
        assert_alike(store, shared, f"SELECT * FROM {view}")


def row_counts(engine: ChdbTransport, run: str) -> dict[str, int]:
    return {
        table: engine.query(
            f"SELECT count() AS n FROM {engine.database}.{table} FINAL WHERE run = $run",
            {"run": run},
        )["n"][0].as_py()
        for table in ROW_TABLES
    }


def write_hostile_run(path: Path) -> None:
    """Write a run with odd text in every place, all kinds of records, and facts out of order."""
    session = make_row(
        2**63 + 7,
        HOSTILE,
        kind=Kind.SESSION,
        attrs={HOSTILE: HOSTILE, "replica": HOSTILE, "reward": 0.5},
        fields={"outcome": "accepted", "reason": HOSTILE},
    )
    rows = [
        session,
        make_row(3, "", attrs={"": 1, "*": 2.0, "tool": HOSTILE, "n": None, "deep": {"a": [1]}}),
        make_row(4, "open", kind=Kind.PHASE, status=Status.OPEN, end_ns=0),
        make_row(5, "state", kind=Kind.STATE, fields={"lane": HOSTILE}),
    ]
    about = b"\x01" * 16, 2**63 + 7
    facts = [
        Fact(*about, 9 * SECOND, {"outcome": "failed", "reason": HOSTILE}),
        Fact(*about, 3 * SECOND, {"outcome": "rejected", "reason": "early", "reward": 0.25}),
        Fact(*about, 9 * SECOND, {"consumed_step": 44, HOSTILE: HOSTILE}),
        Fact(*about, 9 * SECOND, {"outcome": "timeout", "reason": "of two at once, the later"}),
    ]
    metrics = [
        Metric(MetricType.COUNTER, HOSTILE, {HOSTILE: HOSTILE}, 1.0),
        Metric(MetricType.COUNTER, HOSTILE, {"a": "b"}, 2.0),
        Metric(MetricType.GAUGE, HOSTILE, {"a": "b"}, float("nan")),
        Metric(MetricType.HISTOGRAM, "h", {}, 3.5, 2, 1.0, 2.5, {-3: 1, 7: 1}),
    ]
    stacks = [Stack(4, 8 * SECOND, task, [HOSTILE]) for task in ("", HOSTILE)]
    batches = [
        make_batch(0, header=dead_header(), spans=make_columns(*rows)),
        make_batch(1, mono_ns=9 * SECOND, facts=facts, metrics=metrics, stacks=stacks),
        make_batch(2, mono_ns=10 * SECOND, drops={HOSTILE: 3}),
    ]
    write_log(path / "log" / "host-1-1.rsl", batches)


@pytest.fixture(scope="module")
def hostile(
    engine: ChdbTransport, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunStore, ClickHouseStore]]:
    path = tmp_path_factory.mktemp("hostile") / "run"
    write_hostile_run(path)
    with RunStore(path, now_ns=NOW) as store:
        feed(store, engine, HOSTILE)
        yield store, ClickHouseStore(engine, HOSTILE)


@pytest.mark.parametrize("name", SHAPES)
def test_every_view_of_a_run_has_the_rows_that_duckdb_gives(
    name: str, engine: ChdbTransport, tmp_path: Path
) -> None:
    truth = generate_run(tmp_path / name, SHAPES[name])

    with RunStore(tmp_path / name, now_ns=truth.end_ns + SECOND) as store:
        feed(store, engine, name)
        shared = ClickHouseStore(engine, name)

        assert shared.now_ns == store.now_ns
        assert any(store.offsets.values()) or name != "skewed"
        assert shared.query("SELECT count(*) AS n FROM spans")["n"][0].as_py() == truth.total_spans
        assert_all_alike(store, shared)


def test_answers_are_the_same_from_both_stores(engine: ChdbTransport, tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", RunShape(seed=10, steps=3, tasks_per_step=6))

    with RunStore(tmp_path / "run", now_ns=truth.end_ns + SECOND) as store:
        feed(store, engine, "answers")
        shared = ClickHouseStore(engine, "answers")
        scope = resolve_scope(store, "all")

        assert resolve_scope(shared, "all") == scope
        assert find_hotspots(shared, scope) == find_hotspots(store, scope)
        assert phases(shared, scope) == phases(store, scope)
        assert steps(shared, scope) == steps(store, scope)
        assert stuck(shared) == stuck(store)


def test_hotspots_across_processes_are_the_same_from_both_stores(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    write_run_of_two_processes(tmp_path / "run")

    with RunStore(tmp_path / "run", now_ns=EPOCH + 60 * SECOND) as store:
        feed(store, engine, "across")
        shared = ClickHouseStore(engine, "across")
        for by in get_args(HotspotGrouping):
            found = find_hotspots(store, StepScope(), by)
            assert find_hotspots(shared, StepScope(), by) == found


def test_sealed_segments_are_fed_once_each_in_batches(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    truth = generate_run(tmp_path / "run", RunShape(steps=2))

    with RunStore(tmp_path / "run", now_ns=truth.end_ns) as store:
        store.seal()
        first = feed(store, engine, "sealed", batch_rows=100)
        second = feed(store, engine, "sealed", batch_rows=100)

        assert first.segments == 3
        assert second.segments == 0
        assert second.rows < first.rows
        assert_all_alike(store, ClickHouseStore(engine, "sealed"))


def test_feeding_twice_changes_nothing(engine: ChdbTransport, tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", RunShape(steps=2))

    with RunStore(tmp_path / "run", now_ns=truth.end_ns) as store:
        feed(store, engine, "twice")
        before = row_counts(engine, "twice")
        feed(store, engine, "twice")

        assert row_counts(engine, "twice") == before
        assert_all_alike(store, ClickHouseStore(engine, "twice"))


class Failing:
    """Passes everything on until an insert too many, as a feed that is killed."""

    def __init__(self, engine: ChdbTransport, inserts: int) -> None:
        self.database = engine.database
        self.query, self.command = engine.query, engine.command
        self._engine = engine
        self._left = inserts

    def insert(self, table: str, rows: pa.Table, *, token: str = "") -> None:
        if not self._left:
            raise ConnectionError
        self._left -= 1
        self._engine.insert(table, rows, token=token)


@pytest.mark.parametrize("inserts", [0, 2, 9])
def test_a_feed_that_was_interrupted_can_be_repeated(
    inserts: int, engine: ChdbTransport, tmp_path: Path
) -> None:
    run = f"interrupted {inserts}"
    truth = generate_run(tmp_path / "run", RunShape(steps=2, tasks_per_step=6))

    with RunStore(tmp_path / "run", now_ns=truth.end_ns) as store:
        store.seal()
        with pytest.raises(ConnectionError):
            feed(store, Failing(engine, inserts), run, batch_rows=100)
        feed(store, engine, run, batch_rows=100)

        assert_all_alike(store, ClickHouseStore(engine, run))


def test_an_insert_that_is_sent_again_after_its_answer_was_lost_adds_nothing(
    engine: ChdbTransport,
) -> None:
    rows = pa.table({"run": ["token"], "segment": ["x"], "rows": [1], "row_version": [1]})

    engine.insert("rollscope_fed", rows, token="ab12")
    engine.insert("rollscope_fed", rows, token="ab12")

    found = engine.query("SELECT count() AS n FROM rollscope.rollscope_fed WHERE run = 'token'")
    assert found["n"].to_pylist() == [1]


def test_a_span_open_at_the_first_feed_and_ended_at_the_second_is_one_row(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    log = tmp_path / "log" / "host-1-1.rsl"
    opened = make_batch(0, header=dead_header(), spans=make_columns(make_row(status=Status.OPEN)))
    ended = make_batch(1, mono_ns=5 * SECOND, spans=make_columns(make_row(end_ns=4 * SECOND)))
    write_log(log, [opened])

    with RunStore(tmp_path, now_ns=NOW) as store:
        feeder = Feeder(store, engine, "ending")
        feeder.feed()
        shared = ClickHouseStore(engine, "ending")
        before = shared.query("SELECT status, end_ns FROM spans").to_pylist()
        write_log(log, [opened, ended])
        store.refresh()
        feeder.feed()

        after = shared.query("SELECT status, end_ns FROM spans").to_pylist()
        assert [row["status"] for row in before] == ["lost"]
        assert after == [{"status": "ok", "end_ns": EPOCH + 4 * SECOND}]
        old = shared.query("SELECT * FROM spans WHERE end_ns < $end", end=EPOCH + 3 * SECOND)
        assert old.num_rows == 0
        store.seal()
        assert feeder.feed().segments == 1
        assert_all_alike(store, shared)


def test_a_late_feed_of_an_open_span_does_not_undo_its_end(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    opened = make_batch(0, header=dead_header(), spans=make_columns(make_row(status=Status.OPEN)))
    ended = make_batch(1, mono_ns=5 * SECOND, spans=make_columns(make_row(end_ns=4 * SECOND)))
    write_log(tmp_path / "new" / "log" / "host-1-1.rsl", [opened, ended])
    write_log(tmp_path / "old" / "log" / "host-1-1.rsl", [opened])

    for name in ("new", "old"):
        with RunStore(tmp_path / name, now_ns=NOW) as store:
            feed(store, engine, "late")

    found = ClickHouseStore(engine, "late").query("SELECT status FROM spans")
    assert found["status"].to_pylist() == ["ok"]


def test_following_feeds_what_was_added_and_ends_with_a_last_feed(
    engine: ChdbTransport, tmp_path: Path
) -> None:
    log = tmp_path / "log" / "host-1-1.rsl"
    first = make_batch(0, header=dead_header(), spans=make_columns(make_row(1)))
    write_log(log, [first])

    with RunStore(tmp_path, now_ns=NOW) as store:
        feeder = Feeder(store, engine, "followed")
        feeder.feed()
        write_log(log, [first, make_batch(1, spans=make_columns(make_row(2)))])
        stop = threading.Event()
        stop.set()
        follow(feeder, store, stop)

        assert_all_alike(store, ClickHouseStore(engine, "followed"))


def test_without_fresh_rows_only_segments_are_fed(engine: ChdbTransport, tmp_path: Path) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=2))

    with RunStore(tmp_path / "run", now_ns=NOW) as store:
        feed(store, engine, "sealed only", fresh=False)
        empty = ClickHouseStore(engine, "sealed only").query("SELECT * FROM spans")
        store.seal()
        fed = feed(store, engine, "sealed only", fresh=False)

    assert empty.num_rows == 0
    assert fed.segments == 3


def test_a_run_that_was_forgotten_can_be_fed_anew(engine: ChdbTransport, tmp_path: Path) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=2))

    with RunStore(tmp_path / "run", now_ns=NOW) as store:
        store.seal()
        feed(store, engine, "forgotten")
        forget(engine, "forgotten")
        with pytest.raises(StoreError, match="holds no run 'forgotten'; it holds "):
            ClickHouseStore(engine, "forgotten")
        feed(store, engine, "forgotten")

        assert_all_alike(store, ClickHouseStore(engine, "forgotten"))


def test_a_run_needs_a_name(hostile: tuple[RunStore, ClickHouseStore], engine: Any) -> None:
    with pytest.raises(SettingError, match="needs a name"):
        feed(hostile[0], engine, "")


def test_hostile_text_in_every_field_comes_back_as_it_was(
    hostile: tuple[RunStore, ClickHouseStore], engine: ChdbTransport
) -> None:
    store, shared = hostile

    assert HOSTILE in list_runs(engine)
    assert shared.query("SELECT count(*) AS n FROM metrics")["n"].to_pylist() == [4]
    assert shared.query("SELECT count(*) AS n FROM stacks")["n"].to_pylist() == [2]
    assert shared.query("SELECT what FROM drops")["what"].to_pylist() == [HOSTILE]
    assert_all_alike(store, shared)


def test_the_last_fact_of_each_sort_counts(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    sql = "SELECT outcome, reason, reward, consumed_step, charged_step FROM sessions"
    expected = {
        "outcome": "timeout",
        "reason": "of two at once, the later",
        "reward": 0.25,
        "consumed_step": 44,
        "charged_step": 44,
    }

    for source in hostile:
        assert source.query(sql).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        (HOSTILE, HOSTILE, None),
        ("", "1", 1.0),
        ("*", "2.0", 2.0),
        ("n", None, None),
        ("missing", None, None),
        ("deep", '{"a":[1]}', None),
    ],
)
def test_attributes_are_read_by_their_exact_names(
    key: str, text: str | None, number: float | None, hostile: tuple[RunStore, ClickHouseStore]
) -> None:
    span_id = 2**63 + 7 if key == HOSTILE else 3

    for source in hostile:
        read = source.dialect
        sql = (
            f"SELECT {read.json_text('attrs', '$key')} AS t, "
            f"{read.json_number('attrs', '$key')} AS n FROM spans WHERE span_id = $id"
        )
        assert source.query(sql, key=key, id=span_id).to_pylist() == [{"t": text, "n": number}]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(("12", 12.0), ("' 1e3 '", 1000.0), ("1e100", 1e100), ("true", None), ("'x'", None)),
        *(("-0.5", -0.5), ("1e16", 1e16), ("123456789012", 123456789012.0)),
    ],
)
def test_numbers_in_attributes_are_read_alike(
    value: str, number: float | None, hostile: tuple[RunStore, ClickHouseStore]
) -> None:
    text = '{"k": ' + value.replace("'", '"') + "}"

    found = [
        source.query(
            f"SELECT {source.dialect.json_text('attrs', '$key')} AS t, "
            f"{source.dialect.json_number('attrs', '$key')} AS n FROM (SELECT $text AS attrs)",
            key="k",
            text=text,
        ).to_pylist()[0]
        for source in hostile
    ]

    assert found[0] == found[1]
    assert found[0]["n"] == number


def test_lists_are_bound_whatever_they_hold(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    cases: list[tuple[str, list[int] | list[str], int]] = [
        ("span_id", [2**63 + 7, 3], 2),
        ("span_id", [], 0),
        ("name", [HOSTILE, "", "'"], 2),
        ("name", [], 0),
        ("overlap_ns", [-1, 0], 4),
        ("category", ["misc"], 1),
    ]

    for source in hostile:
        for column, values, expected in cases:
            condition = source.dialect.is_in(column, "$values")
            found = source.query(f"SELECT name FROM spans WHERE {condition}", values=values)
            assert found.num_rows == expected, (source.dialect.name, column, values)
        other = source.dialect.is_in("category", "$values")
        found = source.query(f"SELECT name FROM spans WHERE NOT ({other})", values=["io"])
        assert found.num_rows == 1, "what is null is neither in a list nor out of it"


def test_long_lists_are_bound_in_pieces_that_a_server_takes(
    hostile: tuple[RunStore, ClickHouseStore],
    engine: ChdbTransport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    run_bound = engine.run_bound

    def watched(sql: str, texts: Mapping[str, str]) -> bytes:
        sent.extend(texts.values())
        return run_bound(sql, texts)

    monkeypatch.setattr(engine, "run_bound", watched)
    ids = [*range(2**63 - 25_000, 2**63 + 8)]
    for source in hostile:
        condition = source.dialect.is_in("span_id", "$ids")
        sql = f"SELECT span_id FROM spans WHERE {condition} AND span_id > $ids_low"
        assert source.query(sql, ids=ids, ids_low=3)["span_id"].to_pylist() == [2**63 + 7]

    assert max(map(len, sent)) < 2**16


def test_values_of_every_type_are_bound(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    values: dict[str, Value] = {"a": -5, "b1": 2**63, "c": 1e-300, "d": HOSTILE, "e": True}
    sql = "SELECT $a AS a, $b1 AS b, $c AS c, $d AS d, $e AS e"

    for source in hostile:
        (row,) = source.query(sql, **values).to_pylist()
        assert list(row.values()) == list(values.values())


def test_a_value_that_is_missing_is_named(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    with pytest.raises(QueryError, match=r"names \$step, but no value"):
        hostile[1].query("SELECT * FROM spans WHERE step = $step")


def test_percentiles_are_by_nearest_rank(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    sizes = [*range(1, 131), 999, 1000, 20_000]
    percents = [*range(0, 101, 5), 1, 7, 29, 57, 58, 99]
    numbers = {
        "duckdb": "SELECT n, unnest(range(1, n + 1)) AS x FROM (SELECT unnest($sizes) AS n)",
        "clickhouse": "SELECT n, arrayJoin(range(1, n + 1)) AS x "
        "FROM (SELECT arrayJoin($sizes) AS n)",
    }
    expected = [{"n": n, **{f"p{p}": max(-(-p * n // 100), 1) for p in percents}} for n in sizes]

    for source in hostile:
        ranks = ", ".join(f"{source.dialect.rank('x', p)} AS p{p}" for p in percents)
        sql = f"SELECT n, {ranks} FROM ({numbers[source.dialect.name]}) GROUP BY n ORDER BY n"
        assert source.query(sql, sizes=sizes).to_pylist() == expected


def test_percentiles_leave_nulls_out(hostile: tuple[RunStore, ClickHouseStore]) -> None:
    for source in hostile:
        rank = source.dialect.rank("reward", 50)
        half = source.query(f"SELECT {rank} AS p FROM spans")
        none = source.query(f"SELECT {rank} AS p FROM spans WHERE reward IS NULL")
        assert (half["p"].to_pylist(), none["p"].to_pylist()) == ([0.5], [None])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(end_ns) AS m, sum(reward) AS s FROM spans WHERE name = 'no such'",
        "SELECT count(*) AS n, min(name) AS m FROM spans WHERE 1 = 0 HAVING 1 = 1",
        "SELECT s.name AS name, f.reward AS reward FROM spans AS s "
        "LEFT JOIN facts AS f ON s.span_id = f.span_id",
        "WITH mine AS (SELECT kind, name FROM spans) SELECT * FROM mine WHERE kind = 'session'",
        "with recursive n AS (SELECT CAST(1 AS BIGINT) AS x UNION ALL SELECT x + 1 FROM n "
        "WHERE x < 3) SELECT x FROM n WHERE x IN (SELECT spans FROM processes) OR x < 3",
        "SELECT name FROM spans UNION SELECT name FROM events UNION SELECT name FROM spans",
        "SELECT end_ns - start_ns AS start_ns FROM spans WHERE start_ns > 100",
        "SELECT kind, max(start_ns) AS start_ns, min(start_ns) AS low FROM spans GROUP BY kind",
        "SELECT CAST(end_ns AS DOUBLE) AS e, end_ns IS NULL AS o FROM spans WHERE kind = 'x'",
        "SELECT spans, open_spans FROM processes",
        "SELECT kind, count(*) FILTER (WHERE status = 'ok') AS n FROM spans GROUP BY kind",
        "SELECT name, reward FROM spans ORDER BY reward DESC, span_id LIMIT 2",
    ],
)
def test_plain_sql_means_the_same_in_both(
    sql: str, hostile: tuple[RunStore, ClickHouseStore]
) -> None:
    store, shared = hostile

    assert rows_of(shared.query(sql)) == rows_of(store.query(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT -start_ns AS start_ns, span_id FROM spans ORDER BY start_ns, span_id DESC",
        "SELECT kind, -count(*) AS span_id FROM spans GROUP BY kind ORDER BY span_id, kind",
        'SELECT coalesce(name, \',)\') AS "kind" FROM spans -- ORDER BY x\n ORDER BY "kind" DESC',
        "SELECT name FROM spans UNION ALL SELECT '~' || name AS name FROM spans ORDER BY name",
        "SELECT name, reward FROM spans ORDER BY reward DESC NULLS LAST, span_id LIMIT 3",
        "SELECT s.* FROM spans AS s ORDER BY s.span_id",
        "SELECT *, -span_id AS span_id_2 FROM (SELECT 1 AS span_id UNION ALL SELECT 2) "
        "ORDER BY span_id_2",
        "SELECT max(reward) AS reward FROM spans GROUP BY kind HAVING max(reward) IS NULL "
        "ORDER BY reward",
        "WITH a AS (SELECT name FROM spans ORDER BY span_id LIMIT 2) SELECT name FROM a ORDER BY 1",
    ],
)
def test_rows_come_in_the_same_order(sql: str, hostile: tuple[RunStore, ClickHouseStore]) -> None:
    store, shared = hostile

    assert repr(shared.query(sql).to_pylist()) == repr(store.query(sql).to_pylist())


def test_tables_of_a_newer_version_are_refused(engine: ChdbTransport) -> None:
    newer = TABLE_SCHEMA + 1
    engine.insert("rollscope_schema", pa.table({"version": pa.array([newer], pa.uint64())}))
    try:
        with pytest.raises(StoreError, match=f"have schema {newer}.*upgrade rollscope"):
            create_tables(engine)
        with pytest.raises(StoreError, match="upgrade rollscope"):
            ClickHouseStore(engine, HOSTILE)
    finally:
        engine.command(f"DELETE FROM rollscope.rollscope_schema WHERE version = {newer}")


def test_a_column_that_is_new_is_added_to_tables_that_exist(engine: ChdbTransport) -> None:
    engine.command("ALTER TABLE rollscope.drops DROP COLUMN count")

    create_tables(engine)

    found = engine.query(
        "SELECT type FROM system.columns WHERE database = 'rollscope' AND table = 'drops' "
        "AND name = 'count'"
    )
    assert found["type"].to_pylist() == ["Int64"]


@pytest.mark.parametrize("cluster", ["", "it's ours"])
def test_clickhouse_can_read_every_statement(cluster: str, engine: ChdbTransport) -> None:
    for statement in create_statements("other", ttl_days=30, cluster=cluster):
        engine.query(f"EXPLAIN AST {statement}")


class Sharing:
    """Another database of the same engine."""

    def __init__(self, engine: ChdbTransport, database: str) -> None:
        self.database = database
        self.query, self.command = engine.query, engine.command
        self._engine = engine

    def insert(self, table: str, rows: pa.Table, *, token: str = "") -> None:
        del token
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        columns = ", ".join(rows.column_names)
        statement = f"INSERT INTO {self.database}.{table} ({columns})"
        self._engine.insert_stream(statement, sink.getvalue().to_pybytes())


def test_rows_older_than_the_days_kept_are_deleted(engine: ChdbTransport, tmp_path: Path) -> None:
    short = Sharing(engine, "short")
    create_tables(short, ttl_days=1)
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=2, start_ns=EPOCH))

    with RunStore(tmp_path / "run", now_ns=EPOCH) as store:
        feed(store, short, "old")
    engine.command("OPTIMIZE TABLE short.spans FINAL")

    assert ClickHouseStore(short, "old").query("SELECT * FROM spans").num_rows == 0


class Server(http.server.ThreadingHTTPServer):
    """ClickHouse's HTTP interface as far as it is used, in front of the real engine."""

    daemon_threads = False

    def __init__(self, engine: ChdbTransport) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.engine = engine
        self.encodings: set[str] = set()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, answer = 200, self._run(body)
        except QueryError as error:
            status, answer = 500, str(error).encode()
        except PermissionError:
            status, answer = 401, b"Code: 516. DB::Exception: Authentication failed"
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _run(self, body: bytes) -> bytes:
        who = [
            self.headers[name].encode("latin-1")
            for name in ("X-ClickHouse-User", "X-ClickHouse-Key")
        ]
        if who != [b"ann", "pä s".encode()]:
            raise PermissionError
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        assert given["join_use_nulls"] == "1"
        if "query" not in given:
            prefix = "param_"
            texts = {k[len(prefix) :]: v for k, v in given.items() if k.startswith(prefix)}
            return self.server.engine.run_bound(body.decode(), texts)
        self.server.encodings.add(self.headers["Content-Encoding"])
        statement = given["query"].removesuffix(" FORMAT ArrowStream")
        if token := given.get("insert_deduplication_token"):
            statement += f" SETTINGS insert_deduplication_token = '{token}'"
        self.server.engine.insert_stream(statement, gzip.decompress(body))
        return b""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(engine: ChdbTransport) -> Iterator[Server]:
    with Server(engine) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def url_of(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_run_is_fed_and_read_over_http(server: Server, tmp_path: Path) -> None:
    over_http = HttpTransport(url_of(server), user="ann", password="pä s")
    create_tables(over_http)
    write_hostile_run(tmp_path / "run")

    with RunStore(tmp_path / "run", now_ns=NOW) as store:
        store.seal()
        feed(store, over_http, HOSTILE + " over HTTP")
        shared = ClickHouseStore(over_http, HOSTILE + " over HTTP")

        assert server.encodings == {"gzip"}
        assert_all_alike(store, shared)
        condition = shared.dialect.is_in("name", "$names")
        sql = f"SELECT name FROM spans WHERE {condition}"
        assert shared.query(sql, names=[HOSTILE, "'"])["name"].to_pylist() == [HOSTILE]


def test_the_examples_of_the_page_run(
    engine: ChdbTransport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generate_run(tmp_path / "runs" / "my-run", RunShape(steps=1, tasks_per_step=2))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rollscope.store.clickhouse.transport.HttpTransport", lambda *_, **__: engine
    )
    page = Path(__file__).parents[2] / "docs" / "clickhouse.md"

    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(example, {})  # noqa: S102  (our own page)
    for example in re.findall(r"```sql\n(SELECT.*?)```", page.read_text(), re.DOTALL):
        for statement in example.split(";"):
            if statement.strip():
                engine.query(statement)

    shown = capsys.readouterr().out
    assert "Fed(segments=" in shown
    assert "'my-run'" in shown
    assert "accepted" in shown


def test_a_run_is_fed_and_asked_from_the_command_line(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generate_run(tmp_path / "mine", RunShape(steps=2, tasks_per_step=2))
    monkeypatch.setenv(PASSWORD_VARIABLE, "pä s")
    address = f"clickhouse://ann@127.0.0.1:{server.server_address[1]}/rollscope"

    assert main(["feed", str(tmp_path / "mine"), "--to", address, "--as", "over there"]) == 0
    assert " rows sent" in capsys.readouterr().out
    assert main(["phases", f"{address}/over%20there", "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    assert main(["phases", str(tmp_path / "mine"), "--json"]) == 0
    assert there == json.loads(capsys.readouterr().out)
    assert main(["steps", f"{address}/nowhere"]) == 1
    assert "no run 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("clickhouse://", "is no address"),
        ("clickhouse://host", "is no address"),
        ("clickhouse://host:x/db", "is no address"),
        ("clickhouse://host/db/run", "names a run"),
        ("clickhouse://ann:secret@host/db", "CLICKHOUSE_PASSWORD"),
        ("http://host/db", "is no address"),
    ],
)
def test_an_address_that_makes_no_sense_is_explained(address: str, told: str) -> None:
    with pytest.raises(SettingError, match=told):
        connect(address)


def test_what_clickhouse_refuses_is_told_in_its_words(server: Server) -> None:
    over_http = HttpTransport(f"http://ann:p%C3%A4%20s@127.0.0.1:{server.server_address[1]}")

    with pytest.raises(QueryError, match=r"answered 500: .*Unknown expression.* `nonsense`"):
        over_http.query("SELECT nonsense")


def test_a_wrong_password_is_told_and_not_shown(server: Server) -> None:
    over_http = HttpTransport(url_of(server), user="ann", password="sesame")

    with pytest.raises(StoreError, match=r"answered 401: .*Authentication failed") as caught:
        over_http.command("SELECT 1")
    assert "sesame" not in str(caught.value)


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    nobody = HttpTransport(f"http://127.0.0.1:{port}", user="ann", password="sesame")

    with pytest.raises(
        StoreError, match=rf"127\.0\.0\.1:{port} cannot be reached: .*refused.*check"
    ):
        nobody.query("SELECT 1")


def test_a_server_that_does_not_answer_in_time_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        transport = HttpTransport(f"http://127.0.0.1:{port}", timeout_s=0.05)

        with pytest.raises(StoreError, match=r"did not answer within 0\.05 s"):
            transport.query("SELECT 1")


def test_addresses_and_databases_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(SettingError, match=r"'localhost:8123' is no address"):
        HttpTransport("localhost:8123")
    with pytest.raises(SettingError, match="is no name of a database"):
        HttpTransport("http://localhost", database="a; DROP TABLE b")
    with pytest.raises(SettingError, match="no control characters"):
        HttpTransport("http://localhost", user="ann", password="a\nb")
