"""Our own Chrome export, imported again: what went out comes back."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

import rollscope as rs
from rollscope.exporting.chrome import write_chrome
from rollscope.exporting.reading import PlacedRun
from rollscope.importing.accounts import Report
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

_SHAPE = RunShape(steps=3, tasks_per_step=6, rollout_processes=2, parallel_tools=3,
                  nested_share=0.5, outliving_share=0.3, straggling_share=0.2)  # fmt: skip
_QUESTIONS = (
    "SELECT trace_id, span_id, parent_id, session_id, kind, name, category, start_ns, end_ns, "
    "status, reason, outcome, step, version_start, version_end, task_key, family, sample, "
    "group_key, lane, attempt, turns, tokens_in, tokens_out, waited_ns, reward, attrs "
    "FROM spans ORDER BY span_id",
    "SELECT * EXCLUDE (process, pool, recorded_start_ns, recorded_end_ns) FROM sessions "
    "ORDER BY session_id",
    "SELECT * EXCLUDE (process) FROM events ORDER BY event_id",
    "SELECT p.role, p.rank, p.host, p.pid, count(*) AS spans FROM spans "
    "JOIN processes AS p USING (process) GROUP BY ALL ORDER BY ALL",
)


def _answers(store: RunStore) -> list[list[dict[str, Any]]]:
    return [store.query(question).to_pylist() for question in _QUESTIONS]


def _there_and_back(
    run: Path, *, as_async: bool = False, now_ns: int | None = None
) -> tuple[Report, list[Any], list[Any]]:
    sink = io.BytesIO()
    with RunStore(run, now_ns=now_ns) as store, PlacedRun(store) as placed:
        write_chrome(placed, sink, as_async=as_async)
        before = _answers(store)
    trace = run.parent / "trace.json"
    trace.write_bytes(sink.getvalue())
    report = import_run([trace], run.parent / "back")
    with RunStore(run.parent / "back") as store:
        return report, before, _answers(store)


@pytest.mark.parametrize("as_async", [False, True])
def test_everything_comes_back_to_the_nanosecond(tmp_path: Path, as_async: bool) -> None:
    truth = generate_run(tmp_path / "run", _SHAPE)
    report, before, after = _there_and_back(
        tmp_path / "run", as_async=as_async, now_ns=truth.end_ns
    )
    assert any(row["status"] == "open" for row in before[0])
    assert after == before
    (file,) = report.files
    assert (file.format, file.imported) == ("chrome", file.read)


def test_names_and_attributes_that_look_like_ours_come_back(tmp_path: Path) -> None:
    rs.init(run="run", dir=tmp_path)
    odd: dict[str, Any] = {
        "step": "mine", "open": 1, "attr.x": 2, "process": 3, "trace_id": "t", "tokens": 5,
    }  # fmt: skip
    with rs.step(4), rs.task("ok"), rs.session(sample=0, **odd) as session:
        with rs.phase("generate"):
            rs.event("mark", **odd)
        session.finish("rejected", reason="ok")
    rs.annotate(session, consumed_step=6, reward=0.25)
    with rs.state("sync", lane="replica_0"):
        rs.gauge("depth", 3.5)
    rs.shutdown()
    _, before, after = _there_and_back(tmp_path / "run")
    assert after == before
    (row,) = after[1]
    assert (row["task_key"], row["reason"], row["consumed_step"]) == ("ok", "ok", 6)


def test_an_end_before_its_start_comes_back(tmp_path: Path) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=1))
    _, before, _ = _there_and_back(tmp_path / "run")
    document = json.loads((tmp_path / "trace.json").read_text())
    events = [one for one in document["traceEvents"] if one.get("cat") == "phase"]
    start_ns = next(
        row["start_ns"]
        for row in before[0]
        if f"{row['span_id']:016x}" == events[0]["args"]["span_id"]
    )
    events[0]["dur"] = 0
    events[0]["args"] |= {"clock_suspect": True, "recorded_end_ns": start_ns - 5}
    (tmp_path / "odd.json").write_text(json.dumps(document))
    import_run([tmp_path / "odd.json"], tmp_path / "odd")
    with RunStore(tmp_path / "odd") as store:
        found = store.query(
            "SELECT start_ns, end_ns FROM spans WHERE end_ns < start_ns"
        ).to_pylist()
    assert found == [{"start_ns": start_ns, "end_ns": start_ns - 5}]


def test_two_exports_that_share_steps_count_each_span_once(tmp_path: Path) -> None:
    generate_run(tmp_path / "run", RunShape(steps=3, tasks_per_step=2))
    for name, steps in (("a", (0, 1)), ("b", (1, 2))):
        with RunStore(tmp_path / "run") as store, PlacedRun(store, steps=steps) as placed:
            with (tmp_path / f"{name}.json").open("wb") as sink:
                write_chrome(placed, sink)
            told = "SELECT count(*) AS n FROM spans WHERE step BETWEEN 0 AND 2"
            expected = store.query(told).to_pylist()
    import_run([tmp_path / "a.json", tmp_path / "b.json"], tmp_path / "back")
    with RunStore(tmp_path / "back") as store:
        assert store.query("SELECT count(*) AS n FROM spans").to_pylist() == expected


def test_a_file_that_only_claims_to_be_ours_does_no_harm(tmp_path: Path) -> None:
    args = [
        {"span_id": "zz"},
        {"span_id": "1" * 17, "trace_id": 5},
        {"span_id": "ff", "trace_id": "xyz", "parent_id": [], "session_id": {}, "step": "x"},
        {"span_id": "fe", "recorded_end_ns": -(2**70), "status": [], "sample": True, "lane": 3},
        {"span_id": "fd", "consumed_step": "7", "reward": "nan", "consumed_ns": -5},
        {"span_id": "fc", "task_key": "\ud800", "group": 1, "process": 99, "open": True},
    ]
    events = [
        {"name": "s", "cat": "session", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "args": a}
        for a in args
    ]
    document = {"otherData": {"writer": "rollscope"}, "traceEvents": events}
    (tmp_path / "trace.json").write_text(json.dumps(document))
    report = import_run([tmp_path / "trace.json"], tmp_path / "run")
    (file,) = report.files
    assert (file.read, file.imported, file.set_aside) == (6, 6, {})
    with RunStore(tmp_path / "run") as store:
        kinds = store.query("SELECT kind, count(*) AS n FROM spans GROUP BY kind").to_pylist()
    assert {row["kind"]: row["n"] for row in kinds} == {"session": 4, "span": 2}
