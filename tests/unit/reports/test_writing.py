"""Reports of generated runs, read back from the file."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollscope.answers.encoding import encode_answer
from rollscope.answers.questions import QUESTIONS
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import list_sessions
from rollscope.errors import CommandError
from rollscope.reports import ReportChoices, Written, write_report
from rollscope.reports.plan import key_of
from rollscope.reports.sessionlist import session_lines
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run
from tests.unit.reports.inverse import Expander

_SHAPE = RunShape(
    steps=2,
    tasks_per_step=3,
    group_size=2,
    parallel_tools=2,
    nested_share=0.5,
    outliving_share=0.3,
    straggling_share=0.3,
    retry_share=0.5,
    late_share=0.2,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    """Give a run with everything that is hard to count."""
    run = tmp_path_factory.mktemp("report") / "run"
    generate_run(run, _SHAPE)
    with RunStore(run, threads=1) as opened:
        yield opened


class Read:
    """A report as it lies on disk."""

    def __init__(self, path: Path) -> None:
        found = re.findall(r'id="rollscope-report([^"]*)">([^<]*)<', path.read_text())
        self.blocks = {name: gzip.decompress(base64.b64decode(text)) for name, text in found}
        self.index: dict[str, Any] = json.loads(self.blocks[""])
        self.lines = Expander().expand(json.loads(self.blocks["-sessions"]))
        for line in self.lines:
            row = line["row"]
            row["end_ns"] = None if row["status"] == "open" else row["start_ns"] + line["ran_ns"]

    def answer(self, key: str) -> Any:
        """Give an answer by its key."""
        for block, keys in self.index["answers"].items():
            if key in keys:
                written = json.loads(self.blocks[block])[keys.index(key)]
                return Expander(self.lines).expand(written)
        raise KeyError(key)


@pytest.fixture(scope="module")
def report(store: RunStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Written, Read]:
    """Give a report of all of it, with whole ids."""
    path = tmp_path_factory.mktemp("report") / "r.html"
    return write_report(store, path, ReportChoices(ids=True)), Read(path)


def test_the_report_holds_the_answers_that_the_run_gives(
    store: RunStore, report: tuple[Written, Read]
) -> None:
    written, read = report
    assert written.steps == 2
    assert written.size_bytes == Path(written.path).stat().st_size
    for name, given in (
        ("step", {"step": "1"}),
        ("steps", {"last": "20"}),
        ("hotspots", {"scope": "1", "by": "tool"}),
        ("select", {"scope": "0", "filter": "outcome:failed,timeout"}),
        ("staircase", {"step": "1"}),
        ("durations", {"scope": "1"}),
    ):
        asked = json.loads(encode_answer(QUESTIONS[name].ask(store, given)))
        assert read.answer(key_of(name, given)) == asked, name
    assert read.answer("steps?last=200") == read.answer("steps?last=20")
    assert set(read.index["frames"]) == {"host", "replica", "rank", "task", "outcome"}


def test_every_session_is_listed_and_few_are_told_of_in_full(
    store: RunStore, report: tuple[Written, Read]
) -> None:
    written, read = report
    listed = list_sessions(store, StepScope(), "", "start", 1000).sessions
    assert [line["row"]["span_id"] for line in read.lines] == [
        f"{line.row.span_id:016x}" for line in listed
    ]
    assert written.sessions_listed == written.details == len(listed)
    first = read.lines[0]["row"]["span_id"]
    assert read.answer(f"session?session={first}")["session"]["span_id"] == first
    keys = [key for keys in read.index["answers"].values() for key in keys]
    assert not any(key.startswith("payloads") for key in keys)


def test_lines_made_in_one_pass_are_those_of_the_list(store: RunStore) -> None:
    for scope in (StepScope(), StepScope(1, 1)):
        expected = list_sessions(store, scope, "", "start", 1000).sessions
        assert session_lines(store, scope, (None, None)) == expected


def test_a_scope_leaves_other_steps_out_and_says_so(store: RunStore, tmp_path: Path) -> None:
    written = write_report(store, tmp_path / "r.html", ReportChoices(scope="latest"))
    read = Read(tmp_path / "r.html")
    assert written.notes[-1] == "Only steps 1 are in this report."
    badges = read.answer("overview")["completeness"]["badges"]
    assert badges[-1] == {"kind": "report", "sentence": "Only steps 1 are in this report."}
    assert {line["row"]["step"] for line in read.lines} <= {0, 1}
    with pytest.raises(KeyError):
        read.answer("step?step=0")


@pytest.mark.parametrize("name", ["", "missing/r.html"])
def test_a_place_that_cannot_be_written_is_told(store: RunStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match=r"is a directory|cannot be written"):
        write_report(store, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_report(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "r.html"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rollscope.reports.writing._Report.write", full)
    with pytest.raises(CommandError, match="No space left"):
        write_report(store, target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
