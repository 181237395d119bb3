from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]
SHAPE = RunShape(
    steps=2, tasks_per_step=4, rollout_processes=2, stuck_sessions=0, dying_process=False
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    generate_run(tmp_path / "a", SHAPE)
    return tmp_path / "a"


def compact(run: Path, capsys: Out, *more: str) -> dict[str, Any]:
    assert main(["compact", str(run), "--json", *more]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def count(run: Path, capsys: Out) -> int:
    assert main(["sql", str(run), "--json", "-c", "SELECT count(*) AS n FROM spans"]) == 0
    return int(json.loads(capsys.readouterr().out)[0]["n"])


def logs(run: Path) -> list[Path]:
    return list((run / "log").iterdir())


def test_logs_are_sealed_and_nothing_is_lost(run: Path, capsys: Out) -> None:
    before = count(run, capsys)
    answer = compact(run, capsys)
    assert answer["before"]["spans"] == 0
    assert answer["after"]["spans"] == before == count(run, capsys)
    assert answer["is_dry_run"] is False
    assert len(logs(run)) == 3


def test_nothing_is_removed_without_yes(run: Path, capsys: Out) -> None:
    before = count(run, capsys)
    answer = compact(run, capsys, "--keep-days", "0", "--drop-logs")
    assert answer["is_dry_run"] is True
    assert (answer["removed_spans"], answer["dropped_logs"]) == (before, 3)
    assert count(run, capsys) == before
    assert len(logs(run)) == 3
    assert main(["compact", str(run), "--keep-days", "0"]) == 0
    out = capsys.readouterr().out
    assert f"Would be removed: {before:,} spans" in out
    assert "add --yes" in out


def test_old_spans_and_sealed_logs_go_with_yes(run: Path, capsys: Out) -> None:
    before = count(run, capsys)
    assert compact(run, capsys, "--keep-days", "100000", "--yes")["removed_spans"] == 0
    dropped = compact(run, capsys, "--drop-logs", "--yes")
    assert (dropped["dropped_logs"], dropped["after"]["logs"]) == (3, 0)
    assert count(run, capsys) == before
    answer = compact(run, capsys, "--keep-days", "0", "--yes")
    assert answer["removed_spans"] == before
    assert count(run, capsys) == 0


def test_a_size_that_logs_alone_exceed_removes_nothing(run: Path, capsys: Out) -> None:
    before = count(run, capsys)
    answer = compact(run, capsys, "--max-gb", "0.00001", "--yes")
    assert answer["removed_spans"] == 0
    assert "--drop-logs" in " ".join(answer["notes"])
    assert count(run, capsys) == before


def test_a_size_is_kept_to(run: Path, capsys: Out) -> None:
    compact(run, capsys, "--drop-logs", "--yes")
    answer = compact(run, capsys)
    small = answer["after"]["other_bytes"] + 10_000
    answer = compact(run, capsys, "--max-gb", str(small / 1e9), "--yes")
    assert answer["removed_spans"] > 0
    assert answer["after"]["segment_bytes"] <= 10_000


def test_damaged_segments_are_read_again_from_the_logs(run: Path, capsys: Out) -> None:
    before = count(run, capsys)
    compact(run, capsys)
    for path in (run / "segments").glob("spans*.parquet"):
        data = bytearray(path.read_bytes())
        data[10:300] = bytes(290)
        path.write_bytes(data)
    assert main(["compact", str(run)]) == 0
    assert "read again from its logs" in capsys.readouterr().err
    assert count(run, capsys) == before


@pytest.mark.parametrize("argv", [["--keep-days", "-1"], ["--max-gb", "nan"]])
def test_odd_limits_are_refused(run: Path, capsys: Out, argv: list[str]) -> None:
    assert main(["compact", str(run), *argv]) == 2
    assert argv[0] in capsys.readouterr().err


def test_one_log_is_not_a_run(run: Path, capsys: Out) -> None:
    assert main(["compact", str(logs(run)[0])]) == 1
    assert "give the directory" in capsys.readouterr().err
