from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli import runs as module
from rollscope.cli.main import main
from rollscope.testing import RunShape, generate_run
from tests.builders import make_batch, make_header, write_log

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]
SHAPE = RunShape(steps=2, tasks_per_step=3, group_size=2, rollout_processes=2)
CALM = RunShape(
    steps=1, tasks_per_step=2, rollout_processes=1, stuck_sessions=0, dying_process=False
)


def listed(directory: Path, capsys: Out, *more: str) -> dict[str, Any]:
    assert main(["runs", str(directory), "--json", *more]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_each_run_is_counted(tmp_path: Path, capsys: Out) -> None:
    truth = generate_run(tmp_path / "a", SHAPE)
    (row,) = listed(tmp_path, capsys)["runs"]
    assert (row["name"], row["processes"], row["alive"]) == ("a", truth.processes, 0)
    assert (row["steps"], row["sessions"]) == (truth.spans["step"], truth.spans["session"])
    assert row["spans"] == truth.total_spans
    assert row["started_ns"] == SHAPE.start_ns
    assert row["size_bytes"] > 1000
    assert row["last_activity_ns"] > SHAPE.start_ns


def test_the_state_tells_the_living_from_the_ended_and_the_dead(
    tmp_path: Path, capsys: Out
) -> None:
    generate_run(tmp_path / "calm", CALM)
    generate_run(tmp_path / "killed", SHAPE)
    write_log(tmp_path / "live" / "log" / "a.rsl", [make_batch(0, header=make_header())])
    (tmp_path / "empty" / "log").mkdir(parents=True)
    (tmp_path / "no-run").mkdir()
    expected = {"calm": "ended", "killed": "dead", "live": "live", "empty": "empty"}
    states = {row["name"]: row["state"] for row in listed(tmp_path, capsys)["runs"]}
    assert states == expected


def test_a_run_is_not_taken_for_an_empty_directory(tmp_path: Path, capsys: Out) -> None:
    generate_run(tmp_path / "calm", CALM)
    assert main(["runs", str(tmp_path / "calm")]) == 0
    assert f"is a run itself; `rollscope runs {tmp_path}` lists it." in capsys.readouterr().out


def test_big_logs_that_nobody_read_are_only_looked_at(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate_run(tmp_path / "calm", CALM)
    generate_run(tmp_path / "killed", SHAPE)
    write_log(tmp_path / "live" / "log" / "a.rsl", [make_batch(0, header=make_header())])
    monkeypatch.setattr(module, "_READ_BYTES", 1)
    answer = listed(tmp_path, capsys)
    rows = {row["name"]: row for row in answer["runs"]}
    assert answer["uncounted_bytes"] > 1000
    assert {name: row["state"] for name, row in rows.items()} == {
        "calm": "ended",
        "killed": "dead",
        "live": "live",
    }
    assert rows["killed"]["spans"] is None
    assert rows["killed"]["processes"] == 3
    assert main(["runs", str(tmp_path)]) == 0
    assert "Not counted: 3 of 3 runs" in capsys.readouterr().out
    assert all(row["spans"] is not None for row in listed(tmp_path, capsys, "--all")["runs"])


def test_the_newest_comes_last_and_names_cannot_play_tricks(tmp_path: Path, capsys: Out) -> None:
    generate_run(tmp_path / "\x1b[2Jlater", SHAPE, ends_now=True)
    generate_run(tmp_path / "earlier", SHAPE)
    assert main(["runs", str(tmp_path)]) == 0
    head, first, last = capsys.readouterr().out.splitlines()
    assert head.split() == [
        *("run", "started", "state", "alive", "steps", "sessions", "spans", "size", "idle")
    ]
    assert first.startswith("earlier ")
    assert last.startswith("\\x1b[2Jlater ")


def test_one_broken_run_does_not_hide_the_others(tmp_path: Path, capsys: Out) -> None:
    generate_run(tmp_path / "good", CALM)
    generate_run(tmp_path / "newer", CALM)
    (tmp_path / "newer" / "segments").mkdir()
    manifest = tmp_path / "newer" / "segments" / "manifest-00000001.json"
    manifest.write_text('{"number": 1, "schema": 99}')
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "broken" in out
    assert "upgrade rollscope" in err
    assert "good" in out


def test_an_empty_or_missing_directory_says_what_to_do(tmp_path: Path, capsys: Out) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert "rollscope demo" in capsys.readouterr().out
    assert main(["runs", str(tmp_path / "gone")]) == 1
    assert "ROLLSCOPE_DIR" in capsys.readouterr().err
