"""The stand-in for RL-Insight with a real server behind RL_INSIGHT_SERVER_URL."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rollscope
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    import subprocess

ADDRESS = re.compile(r"http://\S+")
SOURCES = os.pathsep.join(
    (str(Path(rollscope.__file__).parents[1]), str(Path(__file__).parents[2]))
)

TRAINER = """
import asyncio, sys, time
from types import SimpleNamespace
import rollscope.integrations.rl_insight as rl_insight
from rollscope.integrations.rl_insight import state

rl_insight.init(project="verl", experiment_name="ppo-smoke",
                config={"server": {"backend": "local"},
                        "prometheus": {"metrics_report_port": int(sys.argv[1])}})

@rl_insight.trace_op("update_model", stage="optimizer")
def update_model():
    pass

async def generate(replica):
    with rl_insight.trace_state("generate", state_lane_id=replica, step=1):
        await asyncio.sleep(0.01)

async def rollout():
    session = rl_insight.agent_loop_session(
        project="verl", experiment_name="ppo-smoke", sample=1, session=0, global_steps=1)
    await asyncio.gather(generate("replica_0"), generate("replica_0"))
    answer = SimpleNamespace(chain_id=1, reward_score=0.5, num_turns=2)
    session.finish(trajectories=[answer], status="success")

asyncio.run(rollout())
update_model()
rl_insight.metric_count("train_step")
rl_insight.metric_gauge("critic/rewards/mean", 0.5)
rl_insight.metric_histogram("step_latency_s", 42.0)
rl_insight.update_prometheus_config(["127.0.0.1:1"], "vllm", [{"replica": "r0"}])
host, port = state.current.endpoint.address()
print(port, flush=True)
sys.stdin.readline()
rl_insight.finish()
"""


def start_view(lab: Lab, *args: object) -> tuple[subprocess.Popen[str], str]:
    words = [sys.executable, "-m", "rollscope", "view", "--port", "0", *map(str, args)]
    process = lab.launch(words, env={"PYTHONPATH": SOURCES})
    assert process.stdout is not None
    found = ADDRESS.search(process.stdout.readline())
    assert found is not None
    return process, found[0]


def ask(address: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """Ask as an unmodified client would: no token but that of the address, no origin."""
    base, _, token = address.partition("?token=")
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent["Content-Type"] = "application/json"
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{base}{path}", data, sent)  # noqa: S310  (http only)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def targets(address: str) -> dict[str, dict[str, str]]:
    _, listed = ask(address, "api/v1/prometheus/targets")
    return {one["targets"][0]: one["labels"] for one in listed}


@pytest.mark.parametrize("options", [(), ("--no-token",)])
def test_a_trainer_sends_everything_to_the_server_that_the_variable_names(
    lab: Lab, options: tuple[str, ...]
) -> None:
    view, address = start_view(lab, "--dir", lab.folder / "kept", *options)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        trainer = lab.start(
            TRAINER,
            port,
            env={
                "RL_INSIGHT_SERVER_URL": address,
                "PYTHONPATH": SOURCES,
                "ROLLSCOPE_RUN": "",
                "ROLLSCOPE_SPOOL_DIR": str(lab.folder / "spool"),
            },
        )
        assert trainer.stdout is not None
        found = int(trainer.stdout.readline())
    assert found != port
    own = f"127.0.0.1:{found}"
    eventually(lambda: {own, "127.0.0.1:1"} <= targets(address).keys(), "both targets")
    assert targets(address)["127.0.0.1:1"]["rl_insight_job"] == "vllm"
    assert targets(address)[own]["rl_insight_job"] == "trainer_metrics"
    with urllib.request.urlopen(f"http://{own}/metrics", timeout=PATIENCE_S) as shown:
        text = shown.read().decode()
    labels = '{experiment_name="ppo-smoke",project="verl"}'
    assert f"rl_insight_monitor_train_step_total{labels} 1.0\n" in text
    assert f"rl_insight_monitor_critic_rewards_mean{labels} 0.5\n" in text
    assert f"rl_insight_monitor_step_latency_s_count{labels} 1\n" in text
    _, err = trainer.communicate("\n", timeout=PATIENCE_S)
    assert trainer.returncode == 0
    assert f"port {port} is not free" in err
    assert own not in targets(address)
    eventually((lab.folder / "kept" / "verl-ppo-smoke").is_dir, "the run")
    status, sessions = ask(address, "api/v1/run/verl-ppo-smoke/answer/sessions")
    assert status == 200
    (line,) = sessions["sessions"]
    assert (line["row"]["task_key"], line["row"]["reward"]) == ("1", 0.5)
    view.send_signal(signal.SIGINT)
    assert view.wait(PATIENCE_S) == 0


def test_an_unmodified_client_is_served_where_there_is_no_token_and_nobody_else(lab: Lab) -> None:
    _, address = start_view(lab, "--dir", lab.folder / "kept", "--no-token")
    port = int(address.rstrip("/").rpartition(":")[2])
    assert ask(address, "healthz") == (200, {"status": "ok"})
    assert ask(address, "api/v1/services") == (
        200,
        {"status": "ok", "otlp_port": port, "prometheus_port": None, "grafana_port": None},
    )
    path = "api/v1/prometheus/targets"
    body = {
        "job_name": "vllm",
        "labels": {"rack": 3},
        "targets": ["h:1", {"target": "h:2", "labels": {"replica": "r2"}}],
    }
    assert ask(address, path, body) == (
        200,
        {
            "status": "ok",
            "prometheus_reloaded": False,
            "job_name": "vllm",
            "target_count": 2,
            "config_file": None,
            "targets_file": None,
        },
    )
    assert targets(address)["h:1"] == {"rack": "3", "rl_insight_job": "vllm"}
    wrong: tuple[Any, ...] = ({}, {"targets": []}, {"targets": [3]}, {"targets": ["file:///x"]})
    for bad in (*wrong, b"no JSON"):
        assert ask(address, path, bad)[0] == 400
    assert ask(address, path, body, Origin="http://evil.example")[0] == 403
    assert ask(address, path, body, Content_Type="text/plain")[0] == 403
    assert ask(address, path, body, Host="evil.example")[0] == 403
    assert ask(address, "api/v1/targets", {"url": "h:3"})[0] == 403


def test_with_a_token_nobody_registers_targets_without_it(lab: Lab) -> None:
    _, address = start_view(lab, "--dir", lab.folder / "kept")
    base = address.partition("?")[0]
    assert ask(base, "api/v1/services")[0] == 401
    assert ask(base, "api/v1/prometheus/targets", {"targets": ["h:1"]})[0] in (401, 403)
    assert ask(address, "api/v1/prometheus/targets", {"targets": ["h:1"]})[0] == 200


def test_a_forked_child_counts_for_itself_at_a_port_of_its_own(lab: Lab) -> None:
    lab.finish(
        """
        import os, urllib.request
        import rollscope.integrations.rl_insight as rl_insight
        from rollscope.integrations.rl_insight import state

        def shown():
            host, port = state.current.endpoint.address()
            with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
                return port, answer.read().decode()

        rl_insight.init(config={"prometheus": {"metrics_report_port": 0}})
        rl_insight.metric_count("steps", 5)
        port, text = shown()
        assert "rl_insight_monitor_steps_total 5.0" in text
        if (child := os.fork()) == 0:
            rl_insight.metric_count("steps", 2)
            own, text = shown()
            os._exit(0 if own != port and "steps_total 2.0" in text else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert "rl_insight_monitor_steps_total 5.0" in shown()[1]
        rl_insight.finish()
        """,
        env={"PYTHONPATH": SOURCES},
    )
