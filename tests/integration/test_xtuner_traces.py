"""`/api/trace`: what programs that watched XTuner's viewers are answered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.integrations import xtuner
from tests.integration.served import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTROLLER = "xtuner.rollout_controller.generate"
JUDGER = "xtuner.judger.judge"


def rollout(uid: int, step: int) -> Any:
    extra = {"_trace_train_step": step, "_trace_model_step": step - 1}
    return SimpleNamespace(
        uid=uid, status="init", task_name="gsm8k", session_uid=7, group_id=uid // 2,
        extra_fields=extra, reward=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of two steps; of the second step one rollout is done, one failed, one still runs."""
    folder = tmp_path_factory.mktemp("runs")
    runtime = xtuner.configure_trace(
        {"enabled": True, "output_dir": folder, "viewer_enabled": False, "classic": "none"}
    )
    first, done, failed, stuck = (rollout(uid, uid // 10) for uid in (10, 20, 21, 22))
    for state in (first, done):
        with xtuner.trace_span(state, CONTROLLER):
            pass
        with xtuner.trace_span(state, JUDGER):
            state.status = "completed"
    with pytest.raises(TimeoutError), xtuner.trace_span(failed, CONTROLLER, worker_rank=3):
        raise TimeoutError("<script>engine</script>")
    with xtuner.trace_span(stuck, CONTROLLER):
        assert runtime.flush()
        yield folder
    xtuner.close_trace()


def ask(place: Path, *paths: str) -> list[Any]:
    async def scenario() -> list[Any]:
        async with served(place) as site:
            return [await site.ask(f"/api/trace{path}") for path in paths]

    return asyncio.run(scenario())


def test_the_shape_of_the_producer_trace_tells_of_the_newest_batch(runs: Path) -> None:
    answer, whole = (each.json for each in ask(runs, "", "?scope=all"))
    assert (answer["scope"], answer["trace_count"], answer["event_count"]) == (
        "latest-produce-batch",
        3,
        7,
    )
    assert answer["task_summary"] == {
        "total_tasks": 3,
        "running_tasks": 1,
        "completed_tasks": 2,
        "current_stage_counts": {"rollout.generate": 1},
    }
    row = answer["rows"][0]
    assert (row["trace_id"], row["uid"], row["status"]) == ("gsm8k:22", 22, "init")
    assert (row["open_span"], row["latest_stage"]) == (CONTROLLER, f"{CONTROLLER}.start")
    (summary,) = answer["open_span_summaries"]
    assert (summary["span"], summary["open_count"]) == (CONTROLLER, 1)
    assert summary["oldest_trace_id"] == "gsm8k:22"
    assert summary["oldest_age_s"] >= summary["p50_age_s"] > 0
    assert [event["stage"] for event in answer["timelines"]["gsm8k:20"]] == [
        f"{CONTROLLER}.start",
        f"{CONTROLLER}.end",
        f"{JUDGER}.start",
        f"{JUDGER}.end",
    ]
    error = answer["timelines"]["gsm8k:21"][-1]
    assert error["stage"] == f"{CONTROLLER}.error"
    assert error["error_msg"] == "<script>engine</script>"
    assert (error["train_step"], error["model_step"]) == (2, 1)
    assert error["elapsed_s"] > 0
    assert (whole["trace_count"], whole["event_count"]) == (4, 11)


def test_with_a_step_it_has_the_shape_of_the_later_version(runs: Path) -> None:
    latest, first, whole = (
        each.json for each in ask(runs, "?train_step=latest", "?train_step=1", "?train_step=all")
    )
    assert latest["available_train_steps"] == [1, 2]
    assert (latest["selected_train_step"], first["selected_train_step"]) == (2, 1)
    assert latest["status_counts"] == {"completed": 1, "failed": 1, "init": 1}
    assert [sample["rollout_id"] for sample in latest["samples"]] == [20, 21, 22]
    assert [sample["rollout_id"] for sample in first["samples"]] == [10]
    assert (whole["sample_count"], whole["selected_train_step"]) == (4, "all")
    stages = {each["stage"]: each for each in latest["stage_duration_summaries"]}
    assert (stages["generate"]["span_count"], stages["reward"]["span_count"]) == (3, 1)
    assert (stages["generate"]["open_count"], stages["generate"]["error_count"]) == (1, 1)
    failed = latest["samples"][1]["spans"][0]
    assert (failed["status"], failed["error_type"]) == ("ERROR", "TimeoutError")


def test_what_cannot_be_answered_says_why(runs: Path, tmp_path: Path) -> None:
    assert [each.status for each in ask(runs, "?scope=x", "?nonsense=1", "?run=none")] == [
        400,
        400,
        404,
    ]
    assert ask(tmp_path, "")[0].status == 404


def test_it_needs_the_token_as_every_answer_does(runs: Path) -> None:
    async def scenario() -> int:
        async with served(runs) as site:
            return (await site.ask("/api/trace", bearer=None)).status

    assert asyncio.run(scenario()) == 401
