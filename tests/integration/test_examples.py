"""The examples, run as a reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import rollscope

_EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, *args: object) -> str:
    command = [sys.executable, str(_EXAMPLES / name), *map(str, args)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert shown.stderr == ""
    return shown.stdout


def test_asynchronous_rollouts_give_fresh_batches_and_a_trace(tmp_path: Path) -> None:
    shown = run_example("async_rollout.py", tmp_path).splitlines()

    assert [line.split(",")[0] for line in shown[:5]] == [
        f"step {step}: 4 groups" for step in range(5)
    ]
    assert shown[5].startswith("not finished: ")
    with rollscope.open("async-rollout", dir=str(tmp_path)) as run:
        sessions = run.sessions().to_pylist()
        assert run.problems == []
        assert {row["name"] for row in run.phases().to_pylist()} == {"generate"}
    consumed = [row["consumed_step"] for row in sessions if row["consumed_step"] is not None]
    assert sorted(consumed) == sorted([*range(5)] * 16)


def test_examples_are_short() -> None:
    for example in _EXAMPLES.glob("*.py"):
        lines = example.read_text().splitlines()
        assert len(lines) < 60, example.name
