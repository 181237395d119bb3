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


def test_programs_for_other_tracers_show_the_same_sessions(tmp_path: Path) -> None:
    run_example("from_areal.py", tmp_path)
    (runs,) = tmp_path.glob("logs/*/example/first/rollscope")
    assert outcomes("example-first", runs) == ["accepted"] * 2 + ["rejected"] * 2
    name = run_example("from_xtuner.py", tmp_path / "xtuner").strip()
    assert outcomes(name, tmp_path / "xtuner") == ["None"] * 3 + ["rejected"]
    run_example("from_rl_insight.py", tmp_path / "rl")
    assert outcomes("examples-ppo", tmp_path / "rl") == ["None"] * 6


def outcomes(name: str, folder: Path) -> list[str]:
    with rollscope.open(name, dir=str(folder)) as run:
        assert run.problems == []
        return sorted(str(row["outcome"]) for row in run.sessions().to_pylist())


def test_examples_are_short() -> None:
    for example in _EXAMPLES.glob("*.py"):
        lines = example.read_text().splitlines()
        # A whole training is longer than what shows one thing.
        assert len(lines) < (160 if example.stem == "torch_grpo" else 60), example.name
