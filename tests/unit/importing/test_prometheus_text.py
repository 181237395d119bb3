import os
from pathlib import Path
from typing import Any

from rollscope.importing.accounts import Report
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_SAMPLE = Path(__file__).parents[2] / "fixtures" / "rl_insight" / "metrics.txt"
_S = 10**9
_T0 = 1_794_725_500 * _S


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _write(tmp_path: Path, name: str, text: str, at_ns: int = _T0) -> Path:
    file = tmp_path / name
    file.write_text(text, errors="surrogateescape")
    os.utime(file, ns=(at_ns, at_ns))
    return file


def _values(run: Path) -> list[tuple[str, str, float, int]]:
    query = "SELECT type, name, value, count FROM metrics ORDER BY time_ns, name, value"
    return [tuple(row.values()) for row in _ask(run, query)]


def _import(tmp_path: Path, text: str) -> Report:
    return import_run([_write(tmp_path, "metrics.txt", text)], tmp_path / "run")


def test_the_sample_gives_its_metrics_as_of_when_it_was_saved(tmp_path: Path) -> None:
    file = _write(tmp_path, "metrics.txt", _SAMPLE.read_text())
    report = import_run([file], tmp_path / "run")
    assert _values(tmp_path / "run") == [
        ("gauge", "rl_insight_monitor_critic_rewards_mean", 0.5, 1),
        ("gauge", "rl_insight_monitor_perf_throughput", 1236.4062986526299, 1),
        ("histogram", "rl_insight_monitor_step_latency_s", 0.7691453136158838, 3),
        ("counter", "rl_insight_monitor_train_step_total", 3.0, 1),
    ]
    assert _ask(tmp_path / "run", "SELECT DISTINCT time_ns FROM metrics") == [{"time_ns": _T0}]
    (account,) = report.files
    assert (account.read, account.imported) == (70, 64)
    assert {why: one.count for why, one in account.set_aside.items()} == {
        "about the process itself": 4,
        "when a series began": 2,
    }


def test_info_gauges_are_sessions_and_never_series(tmp_path: Path) -> None:
    report = import_run([_SAMPLE], tmp_path / "run")
    names = {row["name"] for row in _ask(tmp_path / "run", "SELECT name FROM metrics")}
    assert not any("agent_loop" in name for name in names)
    rows = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session' ORDER BY start_ns")
    assert [(r["task_key"], r["sample"], r["step"], r["reward"], r["turns"]) for r in rows] == [
        ("1", 0, 1, 0.5, 2),
        ("2", 0, 2, 0.5, 2),
    ]
    assert [(r["start_ns"], r["end_ns"]) for r in rows] == [
        (1_794_725_421_045_984_000, 1_794_725_421_046_310_400),
        (1_794_725_421_260_666_400, 1_794_725_421_260_883_000),
    ]
    assert report.guessed == {"times of a session": 2}
    assert report.counts["gauges of sessions"] == 12


def test_trajectories_of_one_session_share_its_reward(tmp_path: Path) -> None:
    title = "T · reward %s · %d turns"
    line = f'x_agent_loop_traj_info{{sample="1",session="0",traj="%d",title="{title}"}} 1'
    lines = [line % (0, "1", 2), line % (1, "0", 3), line % (1, "0", 3), line % (2, "none", 1)]
    _import(tmp_path, "# TYPE x_agent_loop_traj_info gauge\n" + "\n".join(lines) + "\n")
    (row,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert (row["reward"], row["turns"], row["start_ns"]) == (0.5, 6, _T0)


def test_of_two_readings_of_one_program_the_later_counts_what_was_added(tmp_path: Path) -> None:
    text = "# TYPE steps_total counter\nprocess_start_time_seconds %s\nsteps_total %d\n"
    late = _write(tmp_path, "a.txt", text % ("1.5e9", 7), _T0 + 60 * _S)
    early = _write(tmp_path, "b.txt", text % ("1.5e9", 5))
    other = _write(tmp_path, "c.txt", text % ("1.6e9", 100), _T0 + 30 * _S)
    import_run([late, early, other], tmp_path / "run")
    assert _values(tmp_path / "run") == [
        ("counter", "steps_total", 5.0, 1),
        ("counter", "steps_total", 100.0, 1),
        ("counter", "steps_total", 2.0, 1),
    ]


def test_series_of_engines_get_the_engines_own_names(tmp_path: Path) -> None:
    _import(
        tmp_path,
        "# HELP ray_vllm_num_requests_running x\n# TYPE ray_vllm_num_requests_running gauge\n"
        'ray_vllm_num_requests_running{model="m"} 3\n# EOF\n',
    )
    assert _values(tmp_path / "run") == [("gauge", "vllm:num_requests_running", 3.0, 1)]


def test_a_folder_is_searched_for_expositions_and_every_series_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    lines = "".join(f'a{{b="{number}"}} {number}\n' for number in range(2_500))
    _write(folder, "node.prom", f"# TYPE a gauge\n{lines}")
    report = import_run([folder], tmp_path / "run")
    assert report.counts["metrics"] == 2_500
    assert report.files[0].imported == 2_501


def test_a_gauge_that_happens_to_be_called_created_is_kept(tmp_path: Path) -> None:
    _import(tmp_path, "# TYPE jobs_created gauge\njobs_created 4\n")
    assert _values(tmp_path / "run") == [("gauge", "jobs_created", 4.0, 1)]


def test_hostile_lines_are_kept_or_set_aside_and_never_raise(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    report = _import(
        tmp_path,
        "# TYPE a gauge\n"  # 1
        "a 1\n"
        "a{b=} 1\n"
        "a{ 1\n"
        "a NaN\n"
        "a +Inf\n"
        "a one\n"
        f'a{{b="{script}"}} 2\n'
        f'a{{b="{"x" * 70_000}"}} 3\n'
        "a 1 2 3\n"
        "# TYPE\n"
        "# TYPE a b c d e\n"
        '{"quoted", c="d"} 5\n'
        "h_bucket 5\n"
        '{"kind": "gauge", "name": "routed", "value": 6}\n'
        "\udcff\udcfe 7\n"
        "last_one 8",
    )
    (file,) = report.files
    assert file.read == 17
    assert {why: one.lines for why, one in file.set_aside.items()} == {
        "bad: no value of a series": [3, 4, 7, 10, 16],
        "a value without a size": [5, 6],
        "bad: longer than 64 KiB": [9],
    }
    assert file.formats == {"prometheus": 16, "rl-insight": 1}
    values = {(name, value) for _, name, value, _ in _values(tmp_path / "run")}
    assert values == {
        ("a", 1.0),
        ("a", 2.0),
        ("quoted", 5.0),
        ("h_bucket", 5.0),
        ("routed", 6.0),
        ("last_one", 8.0),
    }
