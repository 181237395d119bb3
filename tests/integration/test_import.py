import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rollscope.store.embedded import RunStore

_SAMPLE = Path(__file__).parents[1] / "fixtures/areal/session_tracer/rollout/sessions-r0.jsonl"
_SESSIONS = 12_000
_EAGER = (
    "import sys; from rollscope.cli.main import main; from rollscope.importing import checkpoints;"
    "checkpoints._SHARE = 0; checkpoints.Keeper.every_s = 0.0; sys.exit(main(sys.argv[1:]))"
)
"""Keeps its state as often as it can."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = json.loads(_SAMPLE.read_text().splitlines()[0])
    path = tmp_path / "sessions.jsonl"
    with open(path, "w") as file:
        for number in range(_SESSIONS):
            file.write(json.dumps({**first, "session_id": number, "task_id": number}) + "\n")
    return path


def _arguments(source: Path, runs: Path, name: str) -> list[str]:
    return ["import", str(source), "--dir", str(runs), "--run", name, "--json"]


def _import(source: Path, runs: Path, name: str) -> dict[str, Any]:
    verb = [sys.executable, "-m", "rollscope", *_arguments(source, runs, name)]
    done = subprocess.run(verb, capture_output=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _stop(source: Path, runs: Path, how: signal.Signals) -> tuple[int, str]:
    """Stop an import that has written and kept something; give its exit code and last words."""
    words = [sys.executable, "-c", _EAGER, *_arguments(source, runs, "r")]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    state, written = runs.parent / "cache/rollscope/importing", runs / ".r.importing" / "log"
    deadline = time.monotonic() + 60
    while not _is_kept(state, written) and time.monotonic() < deadline:
        time.sleep(0.01)  # looks for the files; nothing tells when they come
    process.send_signal(how)
    _, said = process.communicate()
    assert written.exists()
    return process.returncode, said


def _is_kept(state: Path, written: Path) -> bool:
    """Say whether the state was kept after the first rows were written."""
    try:
        kept = [path.stat().st_mtime_ns for path in state.iterdir() if not path.suffix]
        return bool(kept) and max(kept) > written.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _rows(run: Path) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        query = "SELECT * EXCLUDE (process) FROM spans ORDER BY span_id, start_ns"
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def test_a_killed_import_goes_on_where_it_was(source: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    code, _ = _stop(source, runs, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (runs / "r").exists()
    report = _import(source, runs, "r")
    assert report["resumed_at"] >= 0.5
    assert report["counts"]["sessions accepted"] == _SESSIONS
    unbroken = _import(source, runs, "whole")
    assert unbroken["resumed_at"] is None
    assert _rows(runs / "r") == _rows(runs / "whole")
    assert sorted(os.listdir(runs)) == ["r", "whole"]


def test_an_import_stopped_by_ctrl_c_says_how_to_go_on(source: Path, tmp_path: Path) -> None:
    code, said = _stop(source, tmp_path / "runs", signal.SIGINT)
    assert code == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
