"""The stand-in for AReaL's tracer at the edges of processes: forks, signals, kills, exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from rollscope.store.fold import read_run
from tests.integration.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
    import os, sys, time
    from rollscope.integrations import areal
    config = {"experiment_name": "e", "trial_name": "t", "fileroot": sys.argv[1],
              "enabled": True, "save_interval": 100, "session_tracer": {"enabled": True}}
    areal.configure(config, rank=0)
    with areal.trace_scope("before"):
        areal.set_session_id(areal.register_session(1))
        with areal.trace_session_phase("generate"):
            pass
    areal.trace_session_event("mark_finalized", task_id=1, status="accepted")
"""


def start(folder: Path, rest: str) -> subprocess.Popen[str]:
    program = textwrap.dedent(HEAD) + textwrap.dedent(rest)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=30)
    return process.returncode


def lines(folder: Path, pattern: str) -> list[dict[str, Any]]:
    found = [path.read_text().splitlines() for path in sorted(folder.rglob(pattern))]
    return [json.loads(line) for part in found for line in part]


def names(folder: Path) -> list[str]:
    return [event["name"] for event in lines(folder, "traces-r*.jsonl") if event["ph"] == "X"]


def native(folder: Path) -> list[Any]:
    [run] = folder.rglob("rollscope/e-t")
    return list(read_run(run).spans.values())


def test_an_ordinary_end_loses_nothing(tmp_path: Path) -> None:
    assert finish(start(tmp_path, "areal.register_session(2)")) == 0
    assert names(tmp_path) == ["before"]
    assert {line["status"] for line in lines(tmp_path, "sessions*.jsonl")} == {
        "accepted",
        "pending",
    }
    assert {span.name for span in native(tmp_path)} >= {"before", "session", "generate", "task"}


def test_an_uncaught_exception_loses_nothing(tmp_path: Path) -> None:
    with start(tmp_path, "raise SystemExit(3)") as process:
        assert finish(process) == 3
    assert names(tmp_path) == ["before"]


def test_sigterm_loses_nothing(tmp_path: Path) -> None:
    with start(tmp_path, "print('on', flush=True); time.sleep(60)") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert finish(process) == -signal.SIGTERM
    assert names(tmp_path) == ["before"]
    assert len(lines(tmp_path, "sessions*.jsonl")) == 1


def test_a_kill_leaves_what_is_older_than_the_writers_pause(tmp_path: Path) -> None:
    with start(tmp_path, "print('on', flush=True); time.sleep(60)") as process:
        eventually(lambda: len(lines(tmp_path, "sessions*.jsonl")) == 1, "a session's line")
        eventually(lambda: "before" in {span.name for span in native(tmp_path)}, "the span")
        process.kill()
        assert finish(process) == -signal.SIGKILL
    assert lines(tmp_path, "sessions*.jsonl")[0]["status"] == "accepted"


def test_a_forked_child_writes_its_own_and_nothing_of_its_parent(tmp_path: Path) -> None:
    rest = """
    child = os.fork()
    if child == 0:
        with areal.trace_scope("in the child"):
            areal.register_session(5)
        areal.save(force=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(child)
    """
    with start(tmp_path, rest) as process:
        output, _ = process.communicate(timeout=30)
    assert sorted(names(tmp_path)) == ["before", "in the child"]
    own = lines(tmp_path, f"traces-r0-p{int(output)}.jsonl")
    assert {event["pid"] for event in own} == {int(output)}
    assert [line["task_id"] for line in lines(tmp_path, "sessions-r0.jsonl")] == [1]
    assert [line["task_id"] for line in lines(tmp_path, "sessions-r0-p*.jsonl")] == [5]


def test_importing_it_loads_neither_areal_nor_torch_nor_ray_and_starts_nothing() -> None:
    program = (
        "import sys, threading, rollscope.integrations.areal\n"
        "assert not {'torch', 'ray', 'areal', 'duckdb'} & set(sys.modules)\n"
        "assert threading.active_count() == 1\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], env=os.environ, check=False).returncode == 0
    )


def test_installing_it_gives_it_the_originals_name() -> None:
    program = (
        "import sys, types\n"
        "from rollscope.integrations import areal\n"
        "sys.modules['areal'] = types.ModuleType('areal')\n"
        "sys.modules['areal.utils'] = types.ModuleType('areal.utils')\n"
        "areal.install()\n"
        "from areal.utils import perf_tracer\n"
        "assert perf_tracer is areal\n"
        "areal.GLOBAL_TRACER = 1\n"
        "try:\n    areal.install()\nexcept RuntimeError:\n    sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7
