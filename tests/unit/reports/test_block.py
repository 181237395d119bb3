"""`with rs.report(...)`: what runs inside is recorded and shown."""

import re
from pathlib import Path

import pytest

import rollscope as rs
from tests.unit.reports.test_writing import Read


def _work(step: int) -> None:
    with rs.step(step), rs.task(f"gsm8k/{step}"), rs.session(sample=step) as session:
        with rs.phase("generate"):
            pass
        session.finish("accepted", reward=1.0)


def test_without_a_run_one_is_recorded_for_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with rs.report(tmp_path / "my work.html"):
        _work(3)
    assert not rs.enabled()
    read = Read(tmp_path / "my work.html")
    assert read.index["run"] == "my-work"
    assert [line["row"]["task_key"] for line in read.lines] == ["gsm8k/3"]
    assert [path.name for path in tmp_path.iterdir()] == ["my work.html"]


def test_within_a_run_only_the_block_is_told_of(tmp_path: Path) -> None:
    rs.init(run="long", dir=tmp_path / "runs")
    _work(1)
    with rs.report(tmp_path / "work.html"):
        _work(2)
    _work(3)
    rs.shutdown()
    read = Read(tmp_path / "work.html")
    assert [line["row"]["step"] for line in read.lines] == [2]
    assert (tmp_path / "runs" / "long").is_dir()


def test_an_error_inside_goes_on_and_is_in_the_report(tmp_path: Path) -> None:
    def fail() -> None:
        with rs.report(tmp_path / "work.html"), rs.step(1), rs.task("t"), rs.session():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert Read(tmp_path / "work.html").lines[0]["row"]["status"] == "error"


def test_a_report_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with rs.report(tmp_path / "no" / "such" / "work.html"):
        _work(1)
    assert re.search(r"no report was written to .*cannot be written", caplog.text)


def test_where_recording_is_off_the_block_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    with rs.report(tmp_path / "work.html"):
        _work(1)
    assert "recording is switched off" in caplog.text
    assert not (tmp_path / "work.html").exists()
