from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollscope.cli import view
from rollscope.cli.main import main
from rollscope.errors import CommandError
from rollscope.importing import passes
from rollscope.importing.checkpoints import Keeper

if TYPE_CHECKING:
    from rollscope.importing.accounts import Report

Out = pytest.CaptureFixture[str]
FIXTURES = Path(__file__).parents[2] / "fixtures"
SESSIONS = FIXTURES / "areal" / "session_tracer"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _import(tmp_path: Path, *more: str) -> int:
    return main(["import", *more, "--dir", str(tmp_path / "runs")])


def test_the_report_tells_what_became_of_every_record(tmp_path: Path, capsys: Out) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_text(
        (FIXTURES / "quirks" / "areal_restart_and_duplicate.jsonl").read_text()
        + '{"session_id": 1, "submit_ts": 1763000000.5, "status": "w\\u001b[31mild"}\n'
        + "{torn\n" * 7
    )
    (folder / "notes.txt").write_text("nothing")
    (folder / "todo.txt").write_text("nothing")
    assert _import(tmp_path, str(folder), "--run", "r") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == [
        *f"file in {folder}/ format read imported".split(),
        "doubled",
        "set",
        "aside",
    ]
    assert lines[1].split() == ["a.jsonl", "areal-sessions", "17", "9", "1", "7"]
    assert lines[2] == "Set aside in a.jsonl, lines 11, 12, 13, 14, 15, …: bad: no JSON object (7)."
    assert "sessions accepted (8)" in out
    assert "Statuses that are not known: w\\x1b[31mild (1)." in out
    assert "Clock domains: rollout-r0 (wall), rollout-r0.2 (wall), r? (wall)." in out
    assert lines[-1] == f"Look at the run with: rollscope view {tmp_path / 'runs' / 'r'}"
    assert err.splitlines() == [
        f"rollscope: {folder}/a.jsonl: 7 of 17 records cannot be read",
        f"rollscope: {folder}/notes.txt, {folder}/todo.txt: no format that is known; it was not "
        "read",
    ]


def test_the_report_is_given_to_programs_as_json(tmp_path: Path, capsys: Out) -> None:
    assert _import(tmp_path, str(SESSIONS), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["tasks"] == 16
    assert report == json.loads((tmp_path / "runs/session_tracer/import.json").read_text())


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["absent"], 1, "no such file or folder"),
        ([str(SESSIONS), "--format", "x"], 2, "there is no format 'x'; there is areal-perf"),
        ([str(SESSIONS), "--run", "../x"], 2, "is no name for a run"),
        ([str(SESSIONS), "--run", ".x"], 2, "no dot at its beginning"),
        ([str(SESSIONS), "--offset", "x=1"], 2, "no clock domain is called x; there is rollout-r0"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(
    more: list[str], code: int, told: str, tmp_path: Path, capsys: Out
) -> None:
    assert _import(tmp_path, *more) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    runs = tmp_path / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []


def test_ctrl_c_says_from_where_the_same_command_goes_on(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "_TELL_EVERY", 1)
    monkeypatch.setattr(Keeper, "is_due", lambda _: True)
    keep = Keeper.keep
    shares: list[float] = []

    def stop(self: Keeper, work: object, share: float) -> None:
        keep(self, work, share)
        shares.append(share)
        if len(shares) == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(Keeper, "keep", stop)
    assert _import(tmp_path, str(SESSIONS), "--run", "r") == 130
    told = f"rollscope: stopped; the same command goes on from {shares[-1]:.0%}\n"
    assert capsys.readouterr().err == told
    assert _import(tmp_path, str(SESSIONS), "--run", "r") == 0
    assert f"Went on from {shares[39]:.0%}" in capsys.readouterr().out


def test_ctrl_c_at_once_leaves_nothing(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(passes.Import, "run", stop)
    assert _import(tmp_path, str(SESSIONS)) == 130
    assert capsys.readouterr().err == "rollscope: stopped; nothing was imported\n"
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_imported_run_began_when_its_data_did_and_is_over(tmp_path: Path, capsys: Out) -> None:
    _import(tmp_path, str(SESSIONS), "--run", "r")
    capsys.readouterr()
    assert main(["runs", "--dir", str(tmp_path / "runs"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["state"], row["alive"], row["processes"]) == ("imported", 0, 2)
    assert 1763000000 <= row["started_ns"] / 1e9 < 1764000000
    assert main(["stuck", str(tmp_path / "runs" / "r"), "--json"]) in (0, 1)
    ages = [one["age_ns"] / 1e9 for one in json.loads(capsys.readouterr().out)["rows"]]
    assert len(ages) == 8
    assert max(ages) < 600
    run = str(tmp_path / "runs" / "r")
    for command in (["top", run, "--once"], ["stuck", run], ["doctor", run]):
        main(command)
        said = capsys.readouterr().out
        assert "imported" in said
        assert " alive" not in said
        assert "silent" not in said


# rollscope view


def _found(place: Path, tmp_path: Path) -> tuple[Path, bool]:
    args = Namespace(place=str(place), dir=str(tmp_path / "runs"), until=None)
    return view._find(args)


def test_a_foreign_file_or_folder_is_shown_as_the_run_that_it_holds(tmp_path: Path) -> None:
    for place in (SESSIONS, SESSIONS / "rollout" / "sessions-r0.jsonl"):
        run, is_single = _found(place, tmp_path)
        assert is_single
        assert (run / "import.json").exists()
        assert run.is_relative_to(tmp_path / "cache")
        assert _found(place, tmp_path) == (run, True)


def test_a_folder_with_runs_and_foreign_files_shows_runs_and_tells_of_the_files(
    tmp_path: Path, capsys: Out
) -> None:
    runs = tmp_path / "runs"
    main(["import", str(SESSIONS), "--dir", str(runs), "--run", "r"])
    capsys.readouterr()
    assert _found(runs, tmp_path) == (runs, False)
    assert capsys.readouterr().err == ""
    (runs / "s.jsonl").write_text((SESSIONS / "rollout" / "sessions-r0.jsonl").read_text())
    assert _found(runs, tmp_path) == (runs, False)
    assert "1 file of other tools too, which are not shown" in capsys.readouterr().err


def test_a_folder_without_anything_known_waits_for_runs(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.json").write_text("{}")
    assert _found(tmp_path / "notes", tmp_path) == (tmp_path / "notes", False)


def test_a_file_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(CommandError, match=r"a\.json is no run, and there is nothing to import"):
        _found(tmp_path / "a.json", tmp_path)
