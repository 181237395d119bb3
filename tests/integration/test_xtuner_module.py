"""XTuner's calls in real programs: the viewer, the ends of processes, children, the commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from rollscope.model.kinds import Kind
from rollscope.store.fold import read_run
from tests.integration.support import PATIENCE_S, eventually

FIXTURES = Path(__file__).parents[1] / "fixtures"
HEAD = """
import os, signal, subprocess, sys, time
from types import SimpleNamespace
from rollscope.integrations import xtuner as trace
def state(uid):
    return SimpleNamespace(uid=uid, status="init", task_name="t", session_uid=1, extra_fields={})
def configure(**fields):
    return trace.configure_trace({"enabled": True, "output_dir": "out", **fields})
"""


def environment() -> dict[str, str]:
    theirs = {
        name: item
        for name, item in os.environ.items()
        if not name.startswith(("ROLLSCOPE", "XTUNER_", "OTEL_"))
    }
    return theirs | {"PYTHONUNBUFFERED": "1"}


def start(folder: Path, source: str) -> subprocess.Popen[str]:
    program = folder / "program.py"
    program.write_text(HEAD + source)
    return subprocess.Popen(
        [sys.executable, str(program)],
        cwd=folder,
        env=environment(),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def producer_lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "out").glob("producer_trace_*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_the_viewer_answers_at_the_address_that_was_told(tmp_path: Path) -> None:
    program = start(
        tmp_path,
        """
runtime = configure(max_events=10)
print(runtime.trace_viewer_url)
with trace.trace_span(state(1), "work"):
    sys.stdin.readline()
trace.close_trace()
""",
    )
    assert program.stdout is not None
    said, url = program.stdout.readline().strip(), program.stdout.readline().strip()
    try:
        assert url.startswith(said.removeprefix("Producer Trace Viewer: "))

        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

        def answers() -> bool:
            try:
                with browser.open(url, timeout=5) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        eventually(answers, "the page to answer")
        with browser.open(f"{url.partition('?')[0]}api/trace", timeout=30) as answer:
            told = json.load(answer)
        assert [row["open_span"] for row in told["rows"]] == ["work"]
    finally:
        program.communicate("go on\n", timeout=PATIENCE_S)
    assert program.returncode == 0


def test_sigterm_loses_no_line(tmp_path: Path) -> None:
    program = start(
        tmp_path,
        """
configure(viewer_enabled=False)
for uid in range(300):
    with trace.trace_span(state(uid), "work"):
        pass
print("done")
time.sleep(600)
""",
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "done\n"
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=PATIENCE_S)
    assert program.returncode == -signal.SIGTERM
    assert len(producer_lines(tmp_path)) == 600


def test_a_fork_writes_each_line_once(tmp_path: Path) -> None:
    program = start(
        tmp_path,
        """
import warnings
warnings.simplefilter("ignore")
configure(viewer_enabled=False)
with trace.trace_span(state(1), "parent"):
    pass
pid = os.fork()
if pid == 0:
    with trace.trace_span(state(2), "child"):
        pass
    trace.close_trace()
    os._exit(0)
os.waitpid(pid, 0)
""",
    )
    program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    stages = sorted(line["stage"] for line in producer_lines(tmp_path))
    assert stages == ["child.end", "child.start", "parent.end", "parent.start"]


def test_a_child_process_goes_on_in_the_session_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        HEAD
        + """
import json
rollout = state(5)
rollout.extra_fields = json.loads(sys.argv[1])
with trace.trace_span(rollout, "xtuner.rollout_worker.generate"):
    pass
"""
    )
    program = start(
        tmp_path,
        """
import json
runtime = configure(viewer_enabled=False)
rollout = state(5)
with trace.trace_span(rollout, "xtuner.rollout_controller.generate"):
    subprocess.run(
        [sys.executable, "child.py", json.dumps(rollout.extra_fields)],
        env=os.environ | trace.get_trace_env_vars(),
        check=True,
    )
print(runtime.run_dir)
""",
    )
    out, _ = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    run = read_run(Path(out.strip()))
    (session,) = run.of_kind(Kind.SESSION)
    (inner,) = run.of_kind(Kind.SPAN)
    assert inner.name == "xtuner.rollout_worker.generate"
    assert inner.session_id == session.span_id
    assert inner.process != session.process
    assert len(producer_lines(tmp_path)) == 4


@pytest.mark.parametrize(
    ("name", "stage"),
    [("xtuner_producer", "xtuner.lmdeploy.request"), ("xtuner_otlp", "generate")],
)
def test_hotspots_reads_files_of_the_original(tmp_path: Path, name: str, stage: str) -> None:
    folder = shutil.copytree(FIXTURES / name, tmp_path / "deep" / "er")
    with next(folder.iterdir()).open("a") as file:
        file.write('{"torn": ')
    done = subprocess.run(
        [
            *(sys.executable, "-m", "rollscope.integrations.xtuner", "hotspots"),
            *(str(tmp_path), "--scope", "all"),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    output = tmp_path / "producer_trace_hotspots.html"
    assert str(output) in done.stdout
    assert stage in done.stdout
    (told,) = done.stderr.splitlines()
    assert ": 1 left out, torn" in told
    assert "<script" in output.read_text()
