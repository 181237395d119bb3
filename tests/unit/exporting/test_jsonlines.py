"""Runs as JSON lines, and back."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import msgspec

import rollscope as rs
from rollscope.cli.main import main
from rollscope.exporting.jsonlines import write_lines
from rollscope.exporting.output import open_output
from rollscope.exporting.scratch import Scratch
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from pathlib import Path

NOT_KEPT = {"process", "recorded_start_ns", "recorded_end_ns", "overlap_ns"}
HOSTILE = 'a"b\\</script>\x00\x1b[31m\u202e\n\U0001f600'


def _rows(run: Path, table: str, order: str, now_ns: int | None = None) -> list[dict[str, Any]]:
    with RunStore(run, now_ns=now_ns) as store:
        rows = store.query(f"FROM {table} ORDER BY {order}").to_pylist()
    return [{key: row[key] for key in row if key not in NOT_KEPT} for row in rows]


def _back(run: Path, *more: str) -> Path:
    assert main(["export", str(run), "--format", "jsonl", *more]) == 0
    import_run([run.with_suffix(".jsonl")], run.parent / "back")
    return run.parent / "back"


def test_a_busy_run_comes_back_column_by_column(tmp_path: Path) -> None:
    shape = RunShape(steps=3, tasks_per_step=6, rollout_processes=2, parallel_tools=3,
                     nested_share=0.5, outliving_share=0.3, straggling_share=0.2)  # fmt: skip
    now_ns = generate_run(tmp_path / "busy", shape).end_ns
    file, back = tmp_path / "busy.jsonl", tmp_path / "back"
    with (
        RunStore(tmp_path / "busy", now_ns=now_ns) as store,
        Scratch(store) as scratch,
        open_output(file) as sink,
    ):
        written = write_lines(scratch, "busy", sink)
    assert import_run([file], back).files[0].imported == 1 + sum(msgspec.structs.astuple(written))
    for table, order in (("spans", "span_id"), ("sessions", "session_id"), ("events", "event_id"),
                         ("fact_sums", "span_id")):  # fmt: skip
        there = _rows(tmp_path / "busy", table, order, now_ns)
        assert there == _rows(back, table, order, now_ns)
        assert there
    who = "SELECT host, pid, role, rank, title FROM processes ORDER BY ALL"
    with RunStore(tmp_path / "busy") as one, RunStore(back) as other:
        assert one.query(who).to_pylist() == other.query(who).to_pylist()


def test_late_facts_and_metrics_and_odd_text_come_back(tmp_path: Path) -> None:
    rs.init(run="odd", dir=tmp_path)
    attrs: dict[str, Any] = {HOSTILE: HOSTILE}
    with rs.step(3), rs.task(HOSTILE), rs.session(sample=1, **attrs) as session:
        rs.event(HOSTILE, note=HOSTILE)
        session.finish("accepted")
    ref = session.ref
    assert ref is not None
    rs.annotate(ref, reward=0.25, consumed_step=4)
    rs.annotate(ref, outcome="dropped", reason="stale")
    rs.gauge("odd", float("inf"), worker=HOSTILE)
    rs.count("odd_total", 2)
    rs.observe("odd_seconds", 0.5)
    rs.shutdown()
    back = _back(tmp_path / "odd")
    for table, order in (("spans", "span_id"), ("events", "event_id"), ("facts", "time_ns, facts"),
                         ("metrics", "name, time_ns")):  # fmt: skip
        there = _rows(tmp_path / "odd", table, order)
        here = _rows(back, table, order)
        for row in (*there, *here):
            row.pop("number", None)
        assert there == here
        assert there
    (row,) = _rows(back, "sessions", "session_id")
    assert (row["outcome"], row["reason"], row["consumed_step"]) == ("dropped", "stale", 4)
    lines = [json.loads(line) for line in (tmp_path / "odd.jsonl").read_text().splitlines()]
    (told,) = [line for line in lines if line["kind"] == "session"]
    assert (told["outcome"], told["reward"], told["consumed_step"]) == ("dropped", 0.25, 4)
    assert told["recorded"] == {"outcome": "accepted", "reason": None}
    assert lines[0]["kind"] == "run"
    assert [line["value"] for line in lines if line.get("name") == "odd"] == ["Infinity"]


def test_a_second_copy_and_an_older_export_add_nothing(tmp_path: Path) -> None:
    rs.init(run="r", dir=tmp_path)
    with rs.task("t"), rs.session() as session:
        rs.count("n_total")
        rs.flush()
        main(["export", str(tmp_path / "r"), "--format", "jsonl", "-o", str(tmp_path / "a.jsonl")])
        session.finish("accepted")
    rs.shutdown()
    whole = tmp_path / "b.jsonl"
    main(["export", str(tmp_path / "r"), "--format", "jsonl", "-o", str(whole)])
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(whole.read_bytes()))
    report = import_run([tmp_path / f"{name}" for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz")],
                        tmp_path / "back")  # fmt: skip
    for file in report.files:
        aside = sum(one.count for one in file.set_aside.values())
        assert file.read == file.imported + file.duplicates + aside
    assert report.files[0].set_aside["an older line of a span"].count == 2
    assert report.files[2].imported == 1  # its first line, which says nothing
    assert _rows(tmp_path / "back", "spans", "span_id") == _rows(tmp_path / "r", "spans", "span_id")
    (row,) = _rows(tmp_path / "back", "metrics", "name")
    assert row["value"] == 1.0


def test_a_scope_takes_only_its_steps(tmp_path: Path) -> None:
    generate_run(tmp_path / "busy", RunShape(steps=3, tasks_per_step=2))
    back = _back(tmp_path / "busy", "--scope", "1")
    assert {row["step"] for row in _rows(back, "spans", "span_id")} == {1}
    facts = {row["span_id"] for row in _rows(back, "facts", "span_id")}
    assert facts
    assert facts <= {row["span_id"] for row in _rows(back, "spans", "span_id")}
