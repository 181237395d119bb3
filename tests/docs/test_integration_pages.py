"""The code on the pages of integrations runs as it stands; stand-ins are there for frameworks."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rollscope
from tests.integration.scripted_server import reply, serving

PAGES = Path(__file__).resolve().parents[2] / "docs" / "integrations"

STAND_INS = {
    "verl/__init__.py": "",
    "verl/utils/__init__.py": "",
    "verl/utils/tracking.py": """
class Tracking:
    supported_backend = ["console"]

    def __init__(self, project_name, experiment_name, default_backend="console", config=None):
        self.logger = {}
""",
    "transformers/__init__.py": """
class TrainerCallback:
    pass
""",
    "trl/extras/__init__.py": "",
    "trl/extras/profiling.py": """
class ProfilingContext:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
""",
    "trl/__init__.py": """
from types import SimpleNamespace

from trl.extras.profiling import ProfilingContext


class GRPOTrainer:
    def __init__(self, model, reward_funcs, train_dataset, callbacks):
        self.reward, self.callbacks = reward_funcs, callbacks
        self.args = SimpleNamespace(run_name="page", output_dir="out", process_index=0)
        self.state = SimpleNamespace(global_step=0, is_world_process_zero=True)

    def tell(self, event, **kwargs):
        for one in self.callbacks:
            getattr(one, event)(self.args, self.state, None, **kwargs)

    def train(self):
        self.tell("on_train_begin")
        self.tell("on_step_begin")
        with ProfilingContext("GRPOTrainer.vLLM.generate"):
            pass
        self.reward(prompts=["p"], completions=["c"])
        self.state.global_step = 1
        self.tell("on_step_end")
        self.tell("on_log", logs={"reward": 1.0})
        self.tell("on_train_end")
""",
    "torch/__init__.py": """
from types import SimpleNamespace

told = []


class Region:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        told.append(self.name)

    def __exit__(self, *error):
        pass


class Profile:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def export_chrome_trace(self, path):
        print("ranges:", *told)


profiler = SimpleNamespace(record_function=Region, profile=Profile)


def ones(size):
    return SimpleNamespace(sum=lambda: size)
""",
}


def blocks(page: str) -> list[str]:
    found = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found, page
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with stand-ins for the frameworks."""
    for name, text in STAND_INS.items():
        path = tmp_path / "frameworks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(folder: Path, *parts: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "frameworks"), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", "\n".join(parts)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_the_page_on_verl(folder: Path) -> None:
    install, own = blocks("verl.md")
    check = 'import verl.utils.tracking as t; assert "rollscope" in t.Tracking.supported_backend'
    assert run(folder, install, check).stderr == ""
    assert run(folder, own).stderr == ""

    with rollscope.open(folder / "runs" / "verl-tools") as recorded:
        (session,) = recorded.sessions().to_pylist()
        (phase,) = recorded.phases().to_pylist()
    assert (session["task_key"], session["step"], session["sample"]) == ("17", 3, 0)
    assert phase["name"] == "toolcall"


def test_the_page_on_trl(folder: Path) -> None:
    (whole,) = blocks("trl.md")
    given = "dataset = []\ndef accuracy(prompts, completions, **kwargs): return [1.0]\n"
    assert run(folder, given, whole).stderr == ""

    with rollscope.open(folder / "runs" / "page") as recorded:
        assert [row["step"] for row in recorded.steps().to_pylist()] == [1]
        assert sorted(row["name"] for row in recorded.phases().to_pylist()) == [
            "generate",
            "reward",
        ]


def test_the_page_on_the_openai_client(folder: Path) -> None:
    connect, use, back = blocks("openai.md")
    choice = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    go = "import asyncio\nasyncio.run(roll_out('2 + 2', 3))"

    async def main() -> subprocess.CompletedProcess[str]:
        async with serving(reply({**answer, "choices": [choice]})) as server:
            here = connect.replace("http://127.0.0.1:8000/v1", server.url)
            assert here != connect
            return await asyncio.to_thread(run, folder, here, use, go, back)

    assert asyncio.run(main()).stderr == ""
    with rollscope.open(folder / "runs" / "agent") as recorded:
        (session,) = recorded.sessions().to_pylist()
        (phase,) = recorded.phases().to_pylist()
    assert (session["sample"], session["outcome"], session["reward"]) == (3, "accepted", 1.0)
    assert (phase["name"], phase["status"]) == ("generate", "ok")


def test_the_page_on_logging(folder: Path) -> None:
    first, show, back = blocks("logging.md")
    said = run(folder, first, show, back).stderr

    assert re.fullmatch(r"WARNING 7 [0-9a-f]{16} reward the judge gave no number\n", said)
    session = said.split()[2]
    shown = subprocess.run(
        [sys.executable, "-m", "rollscope", "show", "runs/logged", session],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "gsm8k/8421" in shown.stdout


def test_the_page_on_torch(folder: Path) -> None:
    first, profile, back = blocks("torch.md")
    done = run(folder, first, profile, back)

    assert (done.stdout, done.stderr) == ("ranges: step 1 forward\n", "")


def test_every_page_is_in_the_table() -> None:
    table = (PAGES / "index.md").read_text()
    pages = {page.name for page in PAGES.glob("*.md")} - {"index.md"}

    assert {name for name in pages if f"({name})" not in table} == set()
