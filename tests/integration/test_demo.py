"""The demo as a newcomer runs it."""

import json
import re
import subprocess
import sys
from pathlib import Path


def test_the_demo_shows_what_ran_hung_failed_and_died(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "rollscope", "demo", "--steps", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=True,
    )

    assert shown.stderr == ""
    for question in ("Why was the last step slow?", "Which rollouts are stuck right now?"):
        assert f"\n{question}\n" in shown.stdout
    assert "\nStep 1 took " in shown.stdout
    assert "1 session is stuck, in toolcall browser" in shown.stdout
    assert "RolloutWorker._browse" in shown.stdout
    assert re.search("lost when (its|their) process died", shown.stdout)
    assert "of all session time in the run" in shown.stdout


def test_the_demo_leaves_a_whole_run_and_nothing_running(tmp_path: Path) -> None:
    demo = [sys.executable, "-m", "rollscope", "demo", "--steps", "1", "--dir", str(tmp_path)]
    subprocess.run(demo, check=True, capture_output=True, timeout=120)
    (run,) = tmp_path.iterdir()

    catted = subprocess.run(
        [sys.executable, "-m", "rollscope", "cat", str(run)],
        check=True,
        capture_output=True,
        timeout=60,
    )

    records = [json.loads(line) for line in catted.stdout.splitlines()]
    processes = {record["pid"]: record for record in records if record["record"] == "process"}
    assert len(processes) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    last_status = {r["span_id"]: r["status"] for r in records if r["record"] == "span"}
    assert "open" not in last_status.values()


def test_a_demo_that_is_ended_from_outside_takes_its_second_process_along(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rollscope", "demo", "--steps", "500", "--dir", str(tmp_path)]
    # The second process inherits the pipe: it closes when both have ended.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as demo:
        while len(list(tmp_path.glob("*/log/*.rsl"))) < 2:
            assert demo.poll() is None
        demo.terminate()
        demo.communicate(timeout=60)
