"""Chrome traces of writers that say more: Ray, RLinf, torch's profiler, viztracer."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rollscope.importing.formats import Options
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_SAMPLES = Path(__file__).parents[2] / "fixtures" / "chrome"
_BASE_NS = 1_763_000_000_000_000_000


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def test_a_timeline_of_ray_has_its_tasks_on_their_workers(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_SAMPLES / "ray_timeline.json"], run)
    assert report.counts == {"spans": 12, "names of a trace": 5}
    assert [(d.name, d.clock, d.rows) for d in report.domains] == [
        ("Node 10.0.0.11", "wall", 6),
        ("Node 10.0.0.12", "wall", 6),
    ]
    parts = _ask(
        run,
        "SELECT t.name, t.attempt, count(*) AS n FROM spans AS s JOIN spans AS t "
        "ON s.parent_id = t.span_id WHERE s.trace_id = t.trace_id GROUP BY ALL ORDER BY ALL",
    )
    assert [tuple(part.values()) for part in parts] == [
        ("ActorWorker.update_weights", 1, 2),
        ("RolloutWorker.generate", 0, 4),
        ("compute_reward", 0, 2),
    ]
    lanes = _ask(
        run,
        "SELECT lane, count(*) AS n FROM spans WHERE parent_id IS NULL GROUP BY lane ORDER BY 1",
    )
    assert [(lane["lane"], lane["n"]) for lane in lanes] == [
        ("10.0.0.11 worker:a1a1a1a1", 2),
        ("10.0.0.12 worker:b2b2b2b2", 1),
        ("10.0.0.12 worker:c3c3c3c3", 1),
    ]
    assert not report.files[0].note


def test_a_timeline_of_ray_with_as_many_tasks_as_it_lists_may_be_incomplete(tmp_path: Path) -> None:
    tasks = [
        {
            "cat": "task::f", "name": "f", "pid": "10.0.0.1", "tid": "worker:01", "ph": "X",
            "ts": 1794725158900000.0 + number, "dur": 1.0, "cname": "generic_work",
            "args": {"task_id": f"{number:x}"},
        }
        for number in range(10_000)
    ]  # fmt: skip
    (tmp_path / "ray.json").write_text(json.dumps(tasks))
    report = import_run([tmp_path / "ray.json"], tmp_path / "run")
    assert report.counts["spans"] == 10_000
    assert "may be incomplete" in next(report.warnings())


def test_a_trace_of_rlinf_has_a_lane_for_each_worker_and_one_open_span(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_SAMPLES / "rlinf_trace.jsonl"], run)
    (file,) = report.files
    assert (file.read, file.imported) == (16, 16)
    rows = _ask(run, "SELECT lane, name, status, step FROM spans ORDER BY start_ns")
    assert [tuple(row.values()) for row in rows] == [
        ("driver", "train_step", "ok", 0),
        ("RolloutGroup:0", "generate", "ok", None),
        ("EnvGroup:0", "interact", "ok", None),
        ("EnvGroup:0", "step", "ok", None),
        ("ActorGroup:0", "run_training", "ok", None),
        ("RolloutGroup:0", "sync_weight", "open", None),
    ]


def _torch_trace(rank: int) -> dict[str, Any]:
    """Give a trace as torch's profiler writes it, with its zero at the end."""

    def op(name: str, cat: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
        where = {"pid": 4242, "tid": 4242, **more}
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **where}

    def told(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
        return {"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args}

    events = [
        op("ProfilerStep#7", "user_annotation", 100.0, 50000.0),
        op("aten::mm", "cpu_op", 200.5, 400.25),
        op("aten::add", "cpu_op", 700.0, 12.0),
        op("update_weights", "user_annotation", 60000.0, 20.0),
        op("cudaLaunchKernel", "cuda_runtime", 300.0, 110.0),
        {"ph": "s", "id": 5, "pid": 4242, "tid": 4242, "ts": 300.0, "cat": "ac2g", "name": "ac2g"},
        op("ncclDevKernel_AllReduce", "kernel", 1000.0, 900.0, pid=0, tid=20),
        {"ph": "f", "id": 5, "pid": 0, "tid": 20, "ts": 1000.0, "cat": "ac2g", "name": "ac2g",
         "bp": "e"},
        op("ProfilerStep#7", "gpu_user_annotation", 1000.0, 900.0, pid=0, tid=20),
        {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "ts": 800.0,
         "pid": 4242, "tid": 4242, "args": {"Bytes": 512}},
        op("PyTorch Profiler (0)", "Trace", 90.0, 99999.0, pid="Spans", tid="PyTorch Profiler"),
        told("process_name", 4242, 0, name="python3"),
        told("process_labels", 0, 0, labels="GPU 0"),
        told("thread_name", 0, 20, name="stream 20 "),
    ]  # fmt: skip
    about = {"backend": "nccl", "rank": rank, "world_size": 8}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU"}],
        "distributedInfo": about,
        "traceEvents": events,
        "traceName": "x",
        "baseTimeNanoseconds": _BASE_NS,
    }


def test_a_trace_of_torchs_profiler_keeps_what_is_long_or_named(tmp_path: Path) -> None:
    for rank in (0, 3):
        text = json.dumps(_torch_trace(rank), indent=2)
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(text)
    report = import_run([tmp_path], tmp_path / "run")
    assert [(d.name, d.clock) for d in report.domains] == [
        ("torch-r0", "anchored"),
        ("torch-r3", "anchored"),
    ]
    for file in report.files:
        assert (file.read, file.imported) == (14, 12)
        assert {why: one.count for why, one in file.set_aside.items()} == {
            "shorter than 100 µs": 1,
            "an event of the profiler's memory log": 1,
        }
    rows = _ask(
        tmp_path / "run",
        "SELECT kind, name, category, lane, step, start_ns FROM spans "
        "WHERE lane LIKE 'torch-r3%' ORDER BY start_ns, name",
    )
    told = [(*list(row.values())[:-1], row["start_ns"] - _BASE_NS) for row in rows]
    assert told == [
        ("span", "PyTorch Profiler (0)", "misc", "torch-r3", None, 90_000),
        ("step", "step", None, "torch-r3", 7, 100_000),
        ("span", "aten::mm", "compute", "torch-r3", 7, 200_500),
        ("span", "cudaLaunchKernel", "misc", "torch-r3", 7, 300_000),
        ("span", "ProfilerStep#7", "misc", "torch-r3 GPU 0 stream 20", 7, 1_000_000),
        ("span", "ncclDevKernel_AllReduce", "comm", "torch-r3 GPU 0 stream 20", 7, 1_000_000),
        ("span", "update_weights", "misc", "torch-r3", None, 60_000_000),
    ]
    linked = _ask(
        tmp_path / "run",
        "SELECT s.name FROM facts JOIN spans AS s USING (span_id) WHERE facts LIKE '%links%'",
    )
    assert len(linked) == 2


def test_a_real_trace_of_torchs_profiler_has_steps_kernels_and_links(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_SAMPLES / "torch_profiler.json"], run)
    (file,) = report.files
    assert (file.read, file.imported) == (70, 47)
    assert {why: one.count for why, one in file.set_aside.items()} == {
        "shorter than 100 µs": 20,
        "an event of the profiler's memory log": 3,
    }
    assert (report.counts["spans"], report.counts["arrows"], report.counts["links"]) == (10, 22, 10)
    steps = _ask(run, "SELECT step, start_ns FROM spans WHERE kind = 'step' ORDER BY step")
    assert [(row["step"], row["start_ns"]) for row in steps] == [
        (2, 1_794_801_060_604_565_275),
        (3, 1_794_801_060_612_074_355),
        (4, 1_794_801_060_619_548_112),
    ]
    kernels = _ask(run, "SELECT lane, category, step FROM spans WHERE name LIKE '%cutlass%'")
    lane = "torch torch_profiler GPU 0 stream 7"
    assert [tuple(row.values()) for row in kernels] == [(lane, "compute", 2)] * 2


def test_all_of_torchs_operators_are_kept_on_request(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(_torch_trace(0)))
    report = import_run([tmp_path / "t.json"], tmp_path / "run", options=Options(min_us=0))
    assert (report.files[0].imported, report.files[0].set_aside) == (14, {})


_PROGRAM = """
import sys
from viztracer import VizTracer

def leaf():
    return sum(range(100))

def branch():
    return [leaf() for _ in range(4)]

with VizTracer(output_file=sys.argv[1], verbose=0) as tracer:
    branch()
    tracer.log_instant("mark")
    tracer.log_var("depth", 3)
"""


def test_a_real_trace_of_viztracer_stands_at_the_time_it_was_made(tmp_path: Path) -> None:
    began_ns = time.time_ns()
    trace = tmp_path / "viz.json"
    subprocess.run([sys.executable, "-c", _PROGRAM, str(trace)], check=True, timeout=60)
    ended_ns = time.time_ns()
    report = import_run([trace], tmp_path / "run")
    (file,) = report.files
    assert file.read == file.imported == len(json.loads(trace.read_text())["traceEvents"])
    leaves = _ask(tmp_path / "run", "SELECT start_ns FROM spans WHERE name LIKE 'leaf (%'")
    assert len(leaves) == 4
    assert all(began_ns < leaf["start_ns"] < ended_ns for leaf in leaves)
    assert [row["name"] for row in _ask(tmp_path / "run", "SELECT name FROM events")] == ["mark"]
    (sample,) = _ask(tmp_path / "run", "SELECT name, value FROM metrics")
    assert sample == {"name": "depth", "value": 3.0}
