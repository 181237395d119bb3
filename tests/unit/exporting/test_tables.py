"""Runs as Parquet and CSV tables."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rollscope as rs
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import list_sessions
from rollscope.answers.steps import steps
from rollscope.cli.main import main
from rollscope.exporting.scratch import Scratch
from rollscope.exporting.tables import TABLES
from rollscope.exporting.tables_writing import write_table
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = RunShape(steps=3, tasks_per_step=6, rollout_processes=2, parallel_tools=3,
                 nested_share=0.5, outliving_share=0.3, straggling_share=0.2)  # fmt: skip
SESSIONS = (
    "run task_key group session sample family role rank replica attempt status outcome reason "
    "source_status error_type error_message start_ns end_ns verdict_ns total_s queue_wait_s "
    "runner_wait_s execution_s backoff_s post_wait_s consume_wait_s generate_s generate_sum_s "
    "toolcall_s toolcall_sum_s reward_s reward_sum_s other_s step consumed_step version_start "
    "version_end reward tokens_in tokens_out tokens_cached turns open clock_suspect attributes"
)
SPANS = (
    "run task_key session kind name category span_id parent_id lane start_ns end_ns duration_ns "
    "status error_type attributes"
)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a run in which much overlaps and some is open, and the moment it is looked at."""
    path = tmp_path_factory.mktemp("tables") / "busy"
    truth = generate_run(path, SHAPE)
    return path, truth.end_ns


def _tables(busy: Any, folder: Path) -> dict[str, list[dict[str, Any]]]:
    path, now_ns = busy
    found = {}
    with RunStore(path, now_ns=now_ns) as store:
        for name in TABLES:
            with Scratch(store) as scratch:
                count = write_table(name, folder / f"{name}.parquet", scratch, store)
            found[name] = pq.read_table(folder / f"{name}.parquet").to_pylist()
            assert len(found[name]) == count
    return found


def test_every_table_has_its_columns_and_says_where_it_is_from(busy: Any, tmp_path: Path) -> None:
    found = _tables(busy, tmp_path)
    file = pq.ParquetFile(tmp_path / "sessions.parquet")
    assert file.schema_arrow.names == SESSIONS.split()
    types = {field.name: str(field.type) for field in file.schema_arrow}
    assert {types[name] for name in ("sample", "rank", "attempt")} == {"int32"}
    assert {types[name] for name in ("start_ns", "step", "tokens_out")} == {"int64"}
    assert {types[name] for name in ("total_s", "reward", "other_s")} == {"double"}
    assert {types[name] for name in ("open", "clock_suspect")} == {"bool"}
    metadata = file.metadata.metadata
    assert metadata[b"run"] == b"busy"
    assert {b"rollscope.schema", b"rollscope.version"} <= metadata.keys()
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    for name in ("phases", "spans"):
        assert pq.ParquetFile(tmp_path / f"{name}.parquet").schema_arrow.names == SPANS.split()
    assert list(found["lanes"][0]) == ["run", "lane", "state", "start_ns", "end_ns", "depth"]
    assert len(found["lanes"]) == 9
    assert {row["kind"] for row in found["spans"]} == {"step", "task", "span", "state"}
    assert {row["kind"] for row in found["phases"]} == {"phase"}


def test_sessions_spend_their_time_as_the_list_of_sessions_says(busy: Any, tmp_path: Path) -> None:
    rows = {row["session"]: row for row in _tables(busy, tmp_path)["sessions"]}
    with RunStore(busy[0], now_ns=busy[1]) as store:
        listed = list_sessions(store, StepScope(), limit=1000).sessions
    assert len(listed) == len(rows) == 72
    closed = 0
    for line in listed:
        row = rows[f"{line.row.span_id:016x}"]
        assert row["outcome"] == line.row.outcome
        assert row["tokens_out"] == line.row.tokens_out
        assert row["reward"] == line.row.reward
        assert row["open"] == (line.row.end_ns is None)
        if row["open"]:
            assert (row["total_s"], row["execution_s"], row["other_s"]) == (None, None, None)
            continue
        closed += 1
        assert row["total_s"] == pytest.approx(line.ran_ns / 1e9)
        assert row["other_s"] == pytest.approx(line.other_ns / 1e9, abs=1e-9)
        for name in ("generate", "toolcall", "reward"):
            assert row[f"{name}_s"] == (
                pytest.approx(line.phases[name] / 1e9) if name in line.phases else None
            )
    assert closed > 60
    assert any((row["toolcall_sum_s"] or 0) > row["toolcall_s"] * 1.2
               for row in rows.values() if row["toolcall_s"])  # fmt: skip


def test_steps_have_the_numbers_of_the_list_of_steps(busy: Any, tmp_path: Path) -> None:
    rows = _tables(busy, tmp_path)["steps"]
    with RunStore(busy[0], now_ns=busy[1]) as store:
        listed = [line.summary for line in steps(store).steps]
    assert [row["step"] for row in rows] == [one.step for one in listed] == [0, 1, 2]
    for row, one in zip(rows, listed, strict=True):
        assert row["sessions"] == one.sessions
        assert row["accepted"] == one.outcomes["accepted"]
        assert row["wait_s"] == one.trainer_wait_ns / 1e9
        assert row["train_s"] == one.train_ns / 1e9
        assert row["sync_s"] == one.sync_ns / 1e9


def _record(path: Path) -> None:
    rs.init(run=path.name, dir=path.parent)
    with rs.task("=1+1"), rs.session(sample=0, note='a"b,\r\nc') as session:
        with rs.phase("@SUM(A1)"):
            pass
        with rs.state("outer", lane="l"), rs.state("inner", lane="l"):
            pass
        session.finish("rejected", reason="-1")
    rs.gauge("loss", 0.5)
    with pytest.raises(ValueError, match="boom"), rs.task("t"), rs.session():
        raise ValueError("boom")
    rs.shutdown()


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_survives_odd_text_and_can_be_made_safe(tmp_path: Path) -> None:
    _record(tmp_path / "odd")
    assert main(["export", str(tmp_path / "odd"), "--format", "csv"]) == 0
    rows = _csv(tmp_path / "odd-csv" / "sessions.csv")
    assert [row["task_key"] for row in rows] == ["=1+1", "t"]
    assert json.loads(rows[0]["attributes"])["note"] == 'a"b,\r\nc'
    assert (rows[0]["outcome"], rows[0]["reason"], rows[0]["generate_s"]) == ("rejected", "-1", "")
    assert (rows[1]["error_type"], rows[1]["error_message"]) == ("ValueError", "boom")
    lanes = _csv(tmp_path / "odd-csv" / "lanes.csv")
    assert [(row["state"], row["depth"]) for row in lanes] == [("outer", "0"), ("inner", "1")]
    assert [row["name"] for row in _csv(tmp_path / "odd-csv" / "metrics.csv")] == ["loss"]
    out = str(tmp_path / "safe")
    main(["export", str(tmp_path / "odd"), "--format", "csv", "-o", out, "--spreadsheet-safe"])
    rows = _csv(tmp_path / "safe" / "sessions.csv")
    assert (rows[0]["task_key"], rows[0]["reason"]) == ("'=1+1", "'-1")
    assert [row["name"] for row in _csv(tmp_path / "safe" / "phases.csv")] == ["'@SUM(A1)"]


def test_one_table_is_a_file_and_nothing_is_replaced_unasked(
    busy: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "r"
    generate_run(run, RunShape(steps=2, tasks_per_step=2))
    command = ["export", str(run), "--format", "csv", "--tables", "sessions"]
    assert main([*command, "--scope", "1"]) == 0
    rows = _csv(tmp_path / "r.sessions.csv")
    assert {row["step"] for row in rows} == {"1"}
    capfd.readouterr()
    assert main(command) == 1
    assert "is there already" in capfd.readouterr().err
    assert main([*command, "-o", "-"]) == 0
    printed = capfd.readouterr().out.splitlines()
    assert len(printed) == 1 + len(rows) * 2
    assert main(["export", str(run), "--format", "csv", "--tables", "nothing"]) == 2
    assert main(["export", str(run), "--format", "parquet", "-o", "-"]) == 2
    assert main(["export", str(run), "--format", "chrome", "--tables", "steps"]) == 2
    assert "parquet or csv" in capfd.readouterr().err


@pytest.mark.parametrize("format_name", ["csv", "chrome", "jsonl"])
def test_a_link_is_written_through_and_stays_one(tmp_path: Path, format_name: str) -> None:
    generate_run(tmp_path / "r", RunShape(steps=1, tasks_per_step=1))
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    tables = ["--tables", "steps"] if format_name == "csv" else []
    command = ["export", str(tmp_path / "r"), "--format", format_name, "-o", str(link), *tables]
    assert main(command) == 0
    assert link.is_symlink()
    assert "step" in target.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "r", "target"]
