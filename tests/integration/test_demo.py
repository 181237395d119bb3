"""The demo as a newcomer runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.support import PATIENCE_S


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(sys.executable, "-m", "rollscope", "demo", "--port", "0"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def faults_in(said: str) -> list[str]:
    """Give what was said on stderr, but for what a busy machine alone is to blame for."""
    return [line for line in said.splitlines() if not line.startswith("the loop was blocked for ")]


def rollscope(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rollscope", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout


def is_running(pid: int) -> bool:
    """Say whether a process runs; one whose end nobody took note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_demo_trains_sums_up_and_leaves_a_whole_run_and_nothing_running(
    tmp_path: Path,
) -> None:
    shown = demo(tmp_path, "--steps", "3")

    assert (shown.returncode, faults_in(shown.stderr)) == (0, [])
    assert re.search(r"live at http://127\.0\.0\.1:\d+/\?token=\S+#/demo-\d+-\d+/now", shown.stdout)
    assert (
        len(re.findall(r"^  step +\d  reward 0\.\d{3} .* 96 sessions in ", shown.stdout, re.M)) == 3
    )
    assert re.search(
        r"\nMean reward went from 0\.\d{3} to 0\.\d{3} in \S+ s: 288 sessions", shown.stdout
    )
    for question in ("How long did steps take, and why?", "Which rollouts are stuck right now?"):
        assert f"\n{question}\n" in shown.stdout
    assert "generate / engine.request" in shown.stdout
    (run,) = (tmp_path / "runs").glob("demo-*/")
    report = run.with_suffix(".html")
    assert report.read_text().startswith("<!doctype html>")
    here = run.relative_to(tmp_path)
    last = shown.stdout.splitlines()[-1]
    assert last.startswith(f"The run is in {here}, the report in {report.relative_to(tmp_path)}. ")
    assert last.endswith(f" view {here}")

    asked = (
        "SELECT role, count(*) AS n, bool_and(status = 'ended') AS ended, list(pid) AS pids "
        "FROM processes GROUP BY role ORDER BY role"
    )
    processes = json.loads(rollscope(tmp_path, "sql", str(run), "--json", "-c", asked))
    assert [(row["role"], row["n"], row["ended"]) for row in processes] == [
        ("replica", 2, True), ("reward", 1, True), ("trainer", 1, True)
    ]  # fmt: skip
    assert not any(is_running(pid) for row in processes for pid in row["pids"])
    asked = "SELECT count(*) FILTER (status = 'open') AS n, count(*) AS spans FROM spans"
    (spans,) = json.loads(rollscope(tmp_path, "sql", str(run), "--json", "-c", asked))
    assert spans["n"] == 0
    assert spans["spans"] > 1000


def test_without_recording_the_demo_trains_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    shown = demo(tmp_path, "--steps", "2")

    assert (shown.returncode, faults_in(shown.stderr)) == (0, [])
    first, *steps, _, last = shown.stdout.splitlines()
    assert first == "Training for 2 steps; ROLLSCOPE=off, so nothing is recorded."
    assert [line.split()[:2] for line in steps] == [["step", "0"], ["step", "1"]]
    assert last.startswith("Mean reward went from ")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_demo_and_everything_that_it_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rollscope", "demo", "--port", "0", "--steps", "500"]
    # All its processes inherit the pipe for faults: it closes when the last one has ended.
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        while not running.stdout.readline().startswith("  step   0"):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        said, faults = running.communicate(timeout=PATIENCE_S)

    assert running.returncode == 130
    assert re.search(r"\nStopped after \d of 500 steps, which stay in runs/demo-", said)
    assert faults_in(faults) == []


def test_a_demo_that_is_killed_takes_its_other_processes_along(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rollscope", "demo", "--port", "0", "--steps", "500"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        while not running.stdout.readline().startswith("  step   0"):
            assert running.poll() is None
        running.kill()
        running.communicate(timeout=PATIENCE_S)

    (run,) = (tmp_path / "runs").glob("demo-*/")
    asked = "SELECT list(pid) AS pids FROM processes"
    (row,) = json.loads(rollscope(tmp_path, "sql", str(run), "--json", "-c", asked))
    assert not any(is_running(pid) for pid in row["pids"])
