"""Programs written for other projects' tracers, run on ours: nothing is changed but their imports.

They lie in `dropins`, as their authors would have written them for the originals.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rollscope
from rollscope.model.kinds import Kind, Outcome, Status
from rollscope.store.fold import Folded, read_run
from tests.integration.support import PATIENCE_S

PROGRAMS = Path(__file__).parent / "dropins"
SOURCES = Path(rollscope.__file__).parents[1]
IMPORTS = {
    "from areal.utils import": "from rollscope.integrations import areal as",
    "from areal.infra.async_task_runner import": "from rollscope.runner.compat import",
    "from areal.infra.staleness_manager import": "from rollscope.runner.compat import",
    "from xtuner.v1.rl.trace import": "from rollscope.integrations.xtuner import",
    "import rl_insight": "import rollscope.integrations.rl_insight as rl_insight",
}


def run(name: str, folder: Path, *, changes: int = 1) -> list[str]:
    """Run a program with ours in the place of what it imports; gives what it prints."""
    source = (PROGRAMS / f"{name}.py.txt").read_text()
    changed = 0
    lines = source.splitlines()
    for number, line in enumerate(lines):
        for theirs, ours in IMPORTS.items():
            if line.startswith(theirs):
                lines[number], changed = line.replace(theirs, ours), changed + 1
    assert changed == changes
    program = folder / f"{name}.py"
    program.write_text("\n".join(lines) + "\n")
    prefixes = ("ROLLSCOPE", "XTUNER_", "OTEL_", "RL_INSIGHT")
    theirs_env = {key: item for key, item in os.environ.items() if not key.startswith(prefixes)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program), str(folder / "out")],
        cwd=folder,
        env=theirs_env | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def read(place: Path) -> Folded:
    folded = read_run(place)
    assert folded.problems == []
    return folded


def outcomes(folded: Folded) -> Counter[tuple[Outcome | None, str | None]]:
    return Counter((each.outcome, each.reason) for each in folded.of_kind(Kind.SESSION))


def names(folded: Folded, kind: Kind) -> Counter[str]:
    return Counter(each.name for each in folded.of_kind(kind))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_trainer_traced_with_areals_tracer(tmp_path: Path) -> None:
    run("areal_tracing", tmp_path)

    (trial,) = (tmp_path / "out" / "logs").glob("*/gsm8k/trial0")
    folded = read(trial / "rollscope" / "gsm8k-trial0")
    assert [step.step for step in folded.of_kind(Kind.STEP)] == [0, 1, 2]
    assert len(folded.of_kind(Kind.TASK)) == 3
    assert outcomes(folded) == {
        (Outcome.ACCEPTED, None): 2,
        (Outcome.REJECTED, "filtered"): 2,
        (Outcome.DROPPED, "sibling_failed"): 1,
        (Outcome.FAILED, "RuntimeError: the tool broke"): 1,
    }
    assert names(folded, Kind.PHASE) == {"generate": 6, "toolcall": 6, "reward": 5}
    assert names(folded, Kind.SPAN)["engine.generate"] == 6
    sessions = lines_of(trial / "session_tracer" / "master" / "sessions-r0.jsonl")
    assert Counter((each["status"], each.get("reason")) for each in sessions) == {
        ("accepted", None): 2,
        ("rejected", "rejected"): 2,
        ("failed", "workflow_exception"): 2,
    }
    for each in sessions:
        check_session_line(each)
    perf = lines_of(trial / "perf_tracer" / "master" / "traces-r0.jsonl")
    spans = Counter(event["name"] for event in perf if event["ph"] == "X")
    assert spans == {
        "train.rollout": 3,
        "train.ppo_update": 3,
        "ppo_actor.update": 3,
        "engine.generate": 6,
    }
    assert [event["args"]["version"] for event in perf if event["ph"] == "i"] == [0, 1, 2]
    assert {event["args"]["global_step"] for event in perf if event["ph"] == "X"} == {0, 1, 2}


SESSION_KEYS = [
    *("task_id", "session_id", "rank", "role", "status", "reason", "submit_ts", "finalized_ts"),
    *("total_s", "generate_s", "reward_s", "toolcall_s", "phases", "counters"),
]
"""The keys of AReaL's lines, in their order; its tools take what is not there for unknown."""


def check_session_line(line: dict[str, Any]) -> None:
    """Read a line as AReaL's plotting tool does."""
    assert [key for key in SESSION_KEYS if key in line] == list(line)
    assert isinstance(line["task_id"], int)
    assert line["total_s"] == pytest.approx(line["finalized_ts"] - line["submit_ts"], abs=1e-4)
    order = ["generate", "reward", "toolcall"]
    assert list(line["phases"]) == [phase for phase in order if phase in line["phases"]]
    for phase, parts in line["phases"].items():
        closed = [part["end_ts"] - part["start_ts"] for part in parts if part["end_ts"] is not None]
        assert line[f"{phase}_s"] == pytest.approx(sum(closed), abs=1e-4)
        assert all(part["start_ts"] >= line["submit_ts"] - 1e-4 for part in parts)


def test_rollouts_through_areals_task_runner_are_one_session_each(tmp_path: Path) -> None:
    results, stats = run("areal_runner", tmp_path, changes=3)

    expected = [(number, None if number == 5 else number * 10) for number in range(8)]
    assert results == str(expected)
    assert stats == "7 0 0"
    (trial,) = (tmp_path / "out" / "logs").glob("*/runner/trial0")
    folded = read(trial / "rollscope" / "runner-trial0")
    sessions = folded.of_kind(Kind.SESSION)
    assert len(sessions) == 8
    assert Counter(each.outcome for each in sessions) == {
        Outcome.ACCEPTED: 7,
        Outcome.REJECTED: 1,
    }
    assert [each.reason for each in sessions if each.outcome is Outcome.REJECTED] == [
        "returned_none"
    ]
    assert names(folded, Kind.PHASE) == {"generate": 8, "reward": 8}
    owners = Counter(each.session_id for each in folded.of_kind(Kind.PHASE))
    assert owners == {each.span_id: 2 for each in sessions}
    classic = lines_of(trial / "session_tracer" / "rollout" / "sessions-r0.jsonl")
    assert Counter(each["status"] for each in classic) == {"accepted": 7, "rejected": 1}
    for each in classic:
        check_session_line(each)


def test_a_producer_traced_in_xtuners_first_design(tmp_path: Path) -> None:
    (place,) = run("xtuner_producer", tmp_path)

    folded = read(Path(place))
    assert len(folded.of_kind(Kind.TASK)) == 2
    assert outcomes(folded) == {(None, None): 3, (Outcome.FAILED, "TimeoutError"): 1}
    assert sorted(each.step or 0 for each in folded.of_kind(Kind.SESSION)) == [1, 1, 2, 2]
    assert {each.version_start for each in folded.of_kind(Kind.SESSION)} == {0, 1}
    assert names(folded, Kind.PHASE) == {"generate": 4, "reward": 3}
    assert [event.name for event in folded.events] == ["generated"] * 3
    (file,) = (tmp_path / "out").glob("producer_trace_*_0001_000000.jsonl")
    stages = Counter(event["stage"].removeprefix("xtuner.") for event in lines_of(file))
    assert stages == {
        "producer.sample_group.end": 4,
        "producer.generate_group.start": 4,
        "producer.generate_group.end": 4,
        "agent_loop.generate_sample.start": 4,
        "agent_loop.generate_sample.end": 4,
        "rollout_worker.generate.start": 4,
        "rollout_worker.generate.end": 3,
        "rollout_worker.generate.error": 1,
        "generated": 3,
        "judger.judge.start": 3,
        "judger.judge.end": 3,
    }
    (error,) = [event for event in lines_of(file) if event["stage"].endswith(".error")]
    assert error["error_msg"] == "TimeoutError: engine did not answer"
    assert (error["trace_id"], error["worker_rank"], error["train_step"]) == ("gsm8k:21", 1, 2)


def test_an_agent_loop_traced_in_xtuners_second_design(tmp_path: Path) -> None:
    place, file = run("xtuner_otel", tmp_path)

    folded = read(Path(place))
    sessions = folded.of_kind(Kind.SESSION)
    assert {(each.group, each.step) for each in sessions} == {("0", 5), ("1", 5)}
    assert len(folded.of_kind(Kind.TASK)) == 2
    assert outcomes(folded) == {(None, None): 3, (Outcome.REJECTED, "filtered"): 1}
    assert {each.attrs["reward"] for each in sessions} == {1.0}
    assert names(folded, Kind.PHASE) == {"generate": 4, "toolcall": 4, "reward": 4}
    assert names(folded, Kind.SPAN) == {
        "single_turn_agent_loop.run": 4,
        "rollout.worker.generate": 4,
        "judger.http": 4,
        "trainer.step": 1,
        "trainer.sync": 1,
    }
    spans = [
        span
        for line in lines_of(Path(file))
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert Counter(span["name"] for span in spans) == {
        "single_turn_agent_loop.run": 4,
        "rollout.controller.generate": 4,
        "rollout.worker.generate": 4,
        "tool.python": 4,
        "judger.run": 4,
        "judger.http": 4,
        "trainer.step": 1,
        "trainer.sync": 1,
    }
    by_id = {span["spanId"]: span for span in spans}
    for span in spans:
        if span["name"] == "rollout.worker.generate":
            assert by_id[span["parentSpanId"]]["name"] == "rollout.controller.generate"


def test_a_trainer_monitored_in_rl_insights_later_form(tmp_path: Path) -> None:
    run("rl_insight_later", tmp_path)

    folded = read(tmp_path / "runs" / "verl-ppo")
    assert outcomes(folded) == {(None, None): 2, (Outcome.REJECTED, "empty"): 2}
    tasks = folded.of_kind(Kind.TASK)
    assert [(each.task_key, each.group, each.step) for each in tasks] == [
        ("0", "group-0", 0),
        ("1", "group-1", 1),
    ]
    assert names(folded, Kind.PHASE) == {"generate": 4}
    lanes = Counter((each.lane, each.name) for each in folded.of_kind(Kind.STATE))
    assert lanes == {
        ("replica_0", "generate"): 4,
        ("trainer_0", "rollout"): 2,
        ("trainer_0", "train"): 2,
    }
    assert names(folded, Kind.SPAN) == {"update_actor": 2, "compute_reward": 4}
    with rollscope.open("verl-ppo", dir=str(tmp_path / "runs")) as opened:
        found = {row["name"] for row in opened.metrics().to_pylist()}
    assert found == {"train_step", "critic/rewards/mean", "step_latency_s"}


def test_a_worker_monitored_in_rl_insights_earlier_form(tmp_path: Path) -> None:
    run("rl_insight_earlier", tmp_path)

    (place,) = (tmp_path / "runs").iterdir()
    folded = read(place)
    assert Counter((each.lane, each.name) for each in folded.of_kind(Kind.STATE)) == {
        ("replica_1", "generate"): 3
    }
    (operation,) = folded.of_kind(Kind.SPAN)
    assert (operation.name, operation.status) == ("sync_weights", Status.ERROR)
    with rollscope.open(str(place)) as opened:
        rows = opened.metrics().to_pylist()
    assert {row["name"] for row in rows} == {"reward_mean", "tokens", "sync_failures"}
