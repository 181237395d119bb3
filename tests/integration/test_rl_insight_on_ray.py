"""The stand-in for RL-Insight in a job of a real Ray, as verl uses it: a trainer, its workers."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import ray

import rollscope as rs
from rollscope.instrument import default
from rollscope.integrations import rl_insight
from rollscope.integrations.rl_insight import state
from rollscope.model.kinds import Kind
from rollscope.rayhub.hub import NAMESPACE, hub_name
from rollscope.store.fold import read_run
from tests.integration.support import eventually
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = IGNORE_LEAKS_OF_RAY


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_cluster():
        yield


@pytest.fixture(autouse=True)
def no_leaks(clean_environment: None) -> Iterator[None]:
    """Look for threads only: Ray keeps its connections as long as it runs."""
    yield
    rl_insight.finish()
    rs.shutdown()
    eventually(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("rollscope-")],
        "the threads of the recorder end",
    )


def config(place: Path) -> dict[str, Any]:
    own = {"dir": str(place / "runs"), "spool_dir": str(place / "spool")}
    return {"prometheus": {"metrics_report_port": 0}, "rollscope": own}


@ray.remote(num_cpus=0)
class Worker:
    """A replica: it is told no names, as verl's workers are not."""

    def __init__(self, number: int, given: dict[str, Any]) -> None:
        self._lane = f"replica_{number}"
        rl_insight.init(config=given)

    def work(self, step: int) -> int:
        with rl_insight.trace_state("generate", state_lane_id=self._lane, step=step):
            rl_insight.metric_count("generated")
        return os.getpid()

    def leave(self) -> str:
        run = state.current is not None and default._tracer.run
        rl_insight.finish()
        return str(run)


def test_the_workers_of_a_job_record_into_the_run_that_the_trainer_named(tmp_path: Path) -> None:
    given = config(tmp_path)
    rl_insight.init("verl", "ppo", given)
    assert default._tracer.settings.sink == "ray"
    workers = [Worker.remote(number, given) for number in range(2)]  # type: ignore[attr-defined]
    with rl_insight.trace_state("rollout", state_lane_id="trainer_0"):
        pids = ray.get([worker.work.remote(step) for step in range(3) for worker in workers])
    assert len(set(pids)) == 2
    assert ray.get([worker.leave.remote() for worker in workers]) == ["verl-ppo", "verl-ppo"]
    rl_insight.finish()
    run = tmp_path / "runs" / "verl-ppo"

    def lanes() -> Counter[str | None]:
        if not run.is_dir():
            return Counter()
        return Counter(each.lane for each in read_run(run).of_kind(Kind.STATE) if each.end_ns)

    expected = {"trainer_0": 1, "replica_0": 3, "replica_1": 3}
    eventually(lambda: lanes() == expected, "all states are kept")
    hub = ray.get_actor(hub_name(str(tmp_path / "runs")), namespace=NAMESPACE)
    ray.kill(hub)


def test_a_local_backend_leaves_ray_alone(tmp_path: Path) -> None:
    rl_insight.init("p", "local", config(tmp_path) | {"server": {"backend": "local"}})
    assert default._tracer.settings.sink == "file"
    with rl_insight.trace_state("train"):
        pass
    rl_insight.finish()
    assert len(read_run(tmp_path / "runs" / "p-local").of_kind(Kind.STATE)) == 1


def test_without_names_the_run_that_the_job_named_last_goes_on(tmp_path: Path) -> None:
    given = config(tmp_path)
    given["rollscope"]["sink"] = "file"
    for project, experiment in (("verl", "grpo"), (None, None)):
        rl_insight.init(project, experiment, given)
        with rl_insight.trace_state("train"):
            pass
        assert default._tracer.run == "verl-grpo"
        rl_insight.finish()
    assert len(read_run(tmp_path / "runs" / "verl-grpo").of_kind(Kind.STATE)) == 2


def test_the_earlier_form_changes_prometheus_on_every_node(tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text("scrape_configs:\n  - job_name: old\n")
    asked = {"prometheus": {"config_file": str(file), "reload": {"mode": "ray"}}}
    rl_insight.update_prometheus_config(asked, ["10.0.0.1:8000", "10.0.0.2:8000"], "vllm")
    assert 'job_name: "vllm"' in file.read_text()
    groups = json.loads((tmp_path / "rollscope-targets" / "vllm.json").read_text())
    assert [group["targets"] for group in groups] == [["10.0.0.1:8000"], ["10.0.0.2:8000"]]
