import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.answers.errors import errors
from rollscope.importing.accounts import Report
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "rl_insight"
_EVENTS = _FIXTURES / "hub_events.jsonl"
_T0 = 1_794_725_420_000_000_000
_LANE = "experiment=e/sample=4/session=2/traj=0"


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
    for row in rows:
        if "attrs" in row:
            row["attrs"] = json.loads(row["attrs"])
    return rows


def _trace(name: str, start_s: int, end_s: int, **attributes: Any) -> dict[str, Any]:
    times = {"start_time_ns": _T0 + start_s * 10**9, "end_time_ns": _T0 + end_s * 10**9}
    return {"kind": "trace", "name": name, **times, "attributes": attributes}


def _agent(name: str, start_s: int, end_s: int, **more: Any) -> dict[str, Any]:
    whose = {"project": "p", "experiment_name": "e", "global_steps": "3", "uid": "u9"}
    return _trace(name, start_s, end_s, state_lane_id=_LANE, **{**whose, **more})


def _import(tmp_path: Path, *events: object) -> Report:
    file = tmp_path / "events.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
    file.write_text("".join(f"{line}\n" for line in lines))
    return import_run([file], tmp_path / "run")


def test_every_event_of_the_sample_is_accounted_for(tmp_path: Path) -> None:
    report = import_run([_EVENTS], tmp_path / "run")
    (file,) = report.files
    assert (file.read, file.imported, file.set_aside) == (17, 17, {})
    assert report.counts == {
        "states": 3,
        "spans": 1,
        "metrics": 4,
        "turns": 2,
        "gauges of sessions": 6,
        "spans of sessions": 1,
        "sessions completed": 1,
        "tasks": 1,
    }
    assert report.guessed == {"time of a metric": 4}
    assert [(d.name, d.rows) for d in report.domains] == [("process-16030", 9), ("metrics", 0)]


def test_states_lie_on_their_lanes_and_say_that_they_were_merged(tmp_path: Path) -> None:
    import_run([_EVENTS], tmp_path / "run")
    rows = _ask(
        tmp_path / "run", "SELECT * FROM spans WHERE kind IN ('state', 'span') ORDER BY start_ns"
    )
    assert [(r["kind"], r["name"], r["lane"], r["step"]) for r in rows[:4]] == [
        ("state", "generate", "replica_0", 1),
        ("state", "compute_log_prob", "actor_worker_0", 1),
        ("state", "update_policy", "actor_worker_0", 1),
        ("span", "update_model", "16030", None),
    ]
    assert [r["attrs"].get("lane_merged") for r in rows[:4]] == [True, True, True, None]
    assert rows[3]["attrs"]["stage"] == "optimizer"


def test_an_agent_session_has_its_turns_reward_and_status(tmp_path: Path) -> None:
    import_run([_EVENTS], tmp_path / "run")
    (session,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert (session["status"], session["outcome"], session["step"]) == ("ok", None, 1)
    assert (session["task_key"], session["sample"]) == ("1", 0)
    assert (session["reward"], session["turns"]) == (0.5, 2)
    assert session["attrs"]["runner_name"] == "react"
    assert session["attrs"]["source_status"] == "completed"
    # Its turns began before the record of it did.
    assert session["attrs"]["source_start_ns"] == 1_794_725_421_045_984_094
    turns = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'phase' ORDER BY start_ns")
    assert [(r["name"], r["attrs"]["turn"], r["tokens_in"], r["tokens_out"]) for r in turns] == [
        ("generate", 0, 120, 40),
        ("generate", 1, 120, 40),
    ]
    assert {row["session_id"] for row in turns} == {session["span_id"]}
    assert session["start_ns"] == turns[0]["start_ns"]


def test_metrics_stand_at_the_time_of_the_span_before_them(tmp_path: Path) -> None:
    import_run([_EVENTS], tmp_path / "run")
    rows = _ask(tmp_path / "run", "SELECT type, name, value, time_ns FROM metrics ORDER BY name")
    assert [(r["type"], r["name"], r["value"]) for r in rows] == [
        ("gauge", "critic_rewards_mean", 0.30000000000000004),
        ("gauge", "perf_throughput", 1246.0078309769976),
        ("histogram", "step_latency_s", 0.24876085856119504),
        ("counter", "train_step", 1.0),
    ]
    assert {r["time_ns"] for r in rows} == {1_794_725_421_041_777_421}


def test_several_values_of_one_gauge_are_all_kept(tmp_path: Path) -> None:
    gauge = {"kind": "gauge", "name": "reward", "labels": {"step": 3}}
    report = _import(tmp_path, *({**gauge, "value": value} for value in (0.25, 0.5, 0.5)))
    rows = _ask(tmp_path / "run", "SELECT value, labels FROM metrics ORDER BY value")
    assert [row["value"] for row in rows] == [0.25, 0.5, 0.5]
    assert report.files[0].duplicates == 0
    assert json.loads(rows[0]["labels"]) == {"step": "3"}


def test_events_and_exposition_tell_of_one_session_once(tmp_path: Path) -> None:
    report = import_run([_EVENTS, _FIXTURES / "metrics.txt"], tmp_path / "run")
    assert report.counts["sessions completed"] == 2
    rows = _ask(tmp_path / "run", "SELECT step, reward FROM spans WHERE kind = 'session'")
    assert sorted((row["step"], row["reward"]) for row in rows) == [(1, 0.5), (2, 0.5)]


@pytest.mark.parametrize(
    ("word", "status", "outcome"),
    [
        ("success", "ok", None),
        ("failure", "error", "failed"),
        ("empty", "ok", "rejected"),
        ("capacity_exhausted", "error", "failed"),
    ],
)
def test_a_session_ends_as_its_record_says(
    tmp_path: Path, word: str, status: str, outcome: str | None
) -> None:
    _import(
        tmp_path,
        _agent("gateway_generation", 0, 2, chain_id=3, content="secret", reasoning=""),
        _agent("agent_session", 1, 5, status=word, **{"monitor.trace_source": "session"}),
        _agent("agent_task", 1, 6, reward=0.75, **{"monitor.trace_source": "task"}),
    )
    (session,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert (session["status"], session["outcome"]) == (status, outcome)
    assert (session["step"], session["task_key"], session["sample"]) == (3, "4", 2)
    assert session["end_ns"] - session["start_ns"] == 6 * 10**9
    assert _ask(tmp_path / "run", "SELECT reward FROM sessions") == [{"reward": 0.75}]
    with RunStore(tmp_path / "run") as store:
        assert errors(store).total == (status == "error")
    (turn,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'phase'")
    assert (turn["attrs"]["branch"], turn["attrs"]["content_chars"]) == (2, 6)
    assert "secret" not in json.dumps(turn["attrs"])
    states = _ask(tmp_path / "run", "SELECT 1 FROM spans WHERE kind = 'state'")
    assert states == []


def test_a_session_without_its_record_is_open(tmp_path: Path) -> None:
    report = _import(tmp_path, _agent("turn_0", 0, 2))
    (session,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert (session["status"], session["end_ns"]) == ("open", None)
    assert report.counts["sessions open"] == 1


def test_gauges_alone_give_sessions(tmp_path: Path) -> None:
    labels = {"sample": "1", "session": "0", "traj": "0", "title": "reward 0.25 · 4 turns"}
    info = {"kind": "gauge", "name": "agent_loop_traj_info", "value": 1.0, "labels": labels}
    report = _import(tmp_path, info, info)
    assert (report.files[0].imported, report.counts["sessions completed"]) == (2, 1)
    (row,) = _ask(tmp_path / "run", "SELECT reward, turns FROM spans WHERE kind = 'session'")
    assert (row["reward"], row["turns"]) == (0.25, 4)


def test_equal_samples_of_two_steps_and_experiments_are_kept_apart(tmp_path: Path) -> None:
    ended = {"monitor.trace_source": "session", "status": "success"}
    report = _import(
        tmp_path,
        _agent("agent_session", 0, 2, **ended),
        _agent("agent_session", 3, 5, **{**ended, "global_steps": 4}),
        _agent("agent_session", 3, 6, **{**ended, "experiment_name": "other"}),
        _agent("agent_session", 3, 6, **{**ended, "experiment_name": "other"}),
    )
    assert (report.counts["sessions completed"], report.files[0].duplicates) == (3, 1)
    assert report.named_runs == ["p-e", "p-other"]


def test_states_at_once_on_one_lane_are_both_kept(tmp_path: Path) -> None:
    lane = {"monitor.trace_segment": "state_interval", "state_lane_id": "replica_0"}
    _import(
        tmp_path,
        _trace("generate", 0, 10, state_name="generate", **lane),
        _trace("generate", 2, 5, state_name="generate", **lane),
        _trace("sync", 4, 3, state_name="sync", **lane),
    )
    rows = _ask(
        tmp_path / "run",
        "SELECT name, end_ns - start_ns AS length, attrs FROM spans ORDER BY start_ns",
    )
    assert [row["length"] for row in rows] == [10 * 10**9, 3 * 10**9, 0]
    assert rows[2]["attrs"]["clock_suspect"] is True


def test_hostile_events_are_kept_or_set_aside_and_never_raise(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    report = _import(
        tmp_path,
        _trace(script * 500, 0, 1, process_id=[1], state_lane_id={"a": 1}, step=[2]),
        _trace("x", 0, 1) | {"attributes": ["no", "map"]},
        _trace("x", 0, 1) | {"start_time_ns": "soon"},
        _trace("x", 0, 1) | {"start_time_ns": 2**80},
        _trace("y", 0, 1) | {"start_time_ns": 55, "end_time_ns": 70},
        _trace("", 0, 1),
        {"kind": "gauge", "name": "g", "value": "x"},
        '{"kind": "gauge", "name": "g", "value": NaN}',
        {"kind": "counter", "name": "c", "value": -1},
        {"kind": "counter", "name": script * 500, "value": "2", "labels": {script: [1], "": None}},
        {"kind": "histogram", "name": "h", "value": True, "labels": {}},
        _agent("turn_1", 0, 1, **{"monitor.trace_source": ["session"], "uid": {"x": 1}}),
        {
            "kind": "gauge",
            "name": "agent_loop_traj_info",
            "value": 1,
            "labels": {"sample": "\ud800"},
        },
        {"kind": "gauge", "name": "a_agent_loop_first_turn_unixtime", "value": 1e300, "labels": 5},
        "{",
    )
    (file,) = report.files
    assert file.read == 15
    assert {why: one.lines for why, one in file.set_aside.items()} == {
        "bad: no time": [3, 4],
        "bad: no name": [6],
        "bad: a metric without a value": [7, 8, 11],
        "a counter that goes down": [9],
        "bad: no JSON object": [15],
    }
    assert file.imported == 7
    assert [d.name for d in report.domains] == [
        "process",
        "process.monotonic",
        "metrics",
        "sessions",
    ]
