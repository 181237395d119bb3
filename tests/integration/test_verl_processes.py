"""verl as it runs: a trainer and workers, each a process that imports what the variable names."""

from __future__ import annotations

import os
import sys

from tests.integration.support import PATIENCE_S, Lab

WORKERS = 2
SAMPLES = 4

_VERL = {
    "__init__.py": """
import importlib, os

for name in filter(None, os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(",")):
    importlib.import_module(name)
""",
    "utils/__init__.py": "",
    "utils/tracking.py": """
class Tracking:
    supported_backend = ["console"]

    def __init__(self, project_name, experiment_name, default_backend="console", config=None):
        assert all(name in self.supported_backend for name in default_backend)
        self.logger = {}

    def log(self, data, step, backend=None):
        for logger in self.logger.values():
            logger.log(data=data, step=step)
""",
    "utils/rollout_trace.py": "raise AssertionError('the original is not to be imported')",
    "loops.py": """
import asyncio
from types import SimpleNamespace

from verl.utils.rollout_trace import RolloutTraceConfig, rollout_trace_attr, rollout_trace_op


class Client:
    @rollout_trace_op
    async def generate(self, request_id, *, prompt_ids, sampling_params):
        await asyncio.sleep(0)
        return SimpleNamespace(token_ids=[1, 2, 3], stop_reason="completed")


class Loop:
    @rollout_trace_op
    async def run(self, sampling_params):
        await Client().generate("r", prompt_ids=[1], sampling_params=sampling_params)
        return SimpleNamespace(response_ids=[1], num_turns=1, reward_score=0.5)


async def roll_out(step, index, sample):
    with rollout_trace_attr(
        step=step, sample_index=index, rollout_n=sample, validate=False, name="agent_loop"
    ):
        await Loop().run({})


async def work(worker, samples):
    RolloutTraceConfig.init("gsm8k", "ppo", None, False, None)
    loops = [roll_out(step, worker, n) for step in (1, 2) for n in range(samples)]
    await asyncio.gather(*loops)
""",
}

_TRAINER = """
    from verl.utils.tracking import Tracking

    tracking = Tracking("gsm8k", "ppo", ["console", "rollscope"], {})
    for step in (1, 2):
        tracking.log({"actor/pg_loss": 0.5, "timing_s/gen": 0.2, "timing_s/step": 0.3}, step)
"""

_WORKER = """
    import asyncio, sys
    from verl.loops import work

    asyncio.run(work(int(sys.argv[1]), int(sys.argv[2])))
"""


def test_trainer_and_workers_record_one_run(lab: Lab) -> None:
    for name, text in _VERL.items():
        path = lab.folder / "frameworks" / "verl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    env = {
        "VERL_USE_EXTERNAL_MODULES": "rollscope.integrations.verl.installed",
        "ROLLSCOPE_RUN": "",
        "PYTHONPATH": os.pathsep.join([str(lab.folder / "frameworks"), *filter(None, sys.path)]),
    }
    programs = [lab.start(_TRAINER, env=env)]
    programs += [lab.start(_WORKER, worker, SAMPLES, env=env) for worker in range(WORKERS)]
    for program in programs:
        _, said = program.communicate(timeout=PATIENCE_S)
        assert (program.returncode, said) == (0, "")

    lab.run = lab.run.parent / "gsm8k-ppo"
    spans = lab.spans()
    assert [run.name for run in lab.run.parent.iterdir()] == ["gsm8k-ppo"]
    assert sorted(span.step or 0 for span in spans if span.kind == "step") == [1, 2]
    sessions = [span for span in spans if span.kind == "session"]
    assert sorted((s.task_key, s.step, s.sample) for s in sessions) == [
        (str(worker), step, sample)
        for worker in range(WORKERS)
        for step in (1, 2)
        for sample in range(SAMPLES)
    ]
    assert {(s.attrs["reward"], s.attrs["turns"]) for s in sessions} == {(0.5, 1)}
    assert len([span for span in spans if span.kind == "task"]) == WORKERS * 2
    assert [span.name for span in spans if span.kind == "phase"] == ["generate"] * len(sessions)
    assert len({span.process for span in spans}) == 1 + WORKERS
    roles = sorted(str(process.role) for process in lab.read().processes.values())
    assert roles == ["rollout", "rollout", "trainer"]
