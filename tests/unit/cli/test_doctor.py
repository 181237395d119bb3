from __future__ import annotations

import json
import shutil
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.cli.main import main
from rollscope.model.batch import Heartbeat, number_column
from rollscope.model.kinds import Status
from rollscope.testing import RunShape, generate_run
from tests.builders import (
    EPOCH,
    SECOND,
    dead_header,
    make_batch,
    make_columns,
    make_header,
    make_row,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.model.batch import Batch, ProcessHeader

Out = pytest.CaptureFixture[str]
CALM = RunShape(
    steps=2,
    tasks_per_step=3,
    rollout_processes=2,
    stuck_sessions=0,
    dying_process=False,
    clock_offsets_s=(0.0,),
)
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def plenty_of_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**12))


def examine(run: Path, capsys: Out, *more: str) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", str(run), "--json", *more])
    out, err = capsys.readouterr()
    assert err == ""
    return code, json.loads(out)


def said(run: Path, capsys: Out, check: str) -> list[str]:
    _, answer = examine(run, capsys)
    return [each["sentence"] for each in answer["findings"] if each["check"] == check]


def one_process(
    run: Path, *batches: Batch, header: ProcessHeader | None = None, tail: bytes = b""
) -> None:
    first = make_batch(0, header=header or make_header(started_ns=EPOCH))
    write_log(run / "log" / "a.rsl", [first, *batches], tail=tail)


def test_a_calm_run_is_fine(tmp_path: Path, capsys: Out) -> None:
    truth = generate_run(tmp_path, CALM)
    code, answer = examine(tmp_path, capsys)
    assert code == 0
    assert {each["severity"] for each in answer["findings"]} <= {"note"}
    assert (answer["processes"], answer["spans"]) == (truth.processes, truth.total_spans)
    assert main(["doctor", str(tmp_path)]) == 0
    assert "Nothing is wrong with it." in capsys.readouterr().out


def test_the_dead_are_named_with_what_they_took(tmp_path: Path, capsys: Out) -> None:
    row = make_row(1, status=Status.OPEN)
    one_process(tmp_path, make_batch(1, spans=make_columns(row)), header=dead_header())
    code, _ = examine(tmp_path, capsys)
    assert code == 1
    (sentence,) = said(tmp_path, capsys, "processes")
    assert "died without closing its log and took 1 open span with it" in sentence


def test_a_living_process_that_writes_nothing_is_told(tmp_path: Path, capsys: Out) -> None:
    one_process(tmp_path)
    assert "has written nothing for" in said(tmp_path, capsys, "processes")[0]


def test_drops_are_told_by_kind_and_process(tmp_path: Path, capsys: Out) -> None:
    one_process(tmp_path, make_batch(1, drops={"spans: buffer full": 1200, "events: late": 3}))
    many, few = sorted(said(tmp_path, capsys, "drops"), reverse=True, key=len)
    assert "1,200" in many
    assert "spans: buffer full" in many
    assert "3 dropped as `events: late`" in few


@pytest.mark.parametrize(
    ("what", "advice"),
    [
        ("span.overload", "Record fewer or shorter spans"),
        ("session.slow_sink", "faster disk"),
        ("metric.no_number", "plain numbers"),
        ("metric.amount", "finite amounts"),
        ("metric.series", "ROLLSCOPE_METRIC_SERIES"),
        ("payload.redact", "redact function"),
        ("phase.no_memory", "more memory"),
        ("span.not_encodable", "report"),
    ],
)
def test_what_was_dropped_is_advised_on_by_its_reason(
    what: str, advice: str, tmp_path: Path, capsys: Out
) -> None:
    one_process(tmp_path, make_batch(1, drops={what: 3}))
    _, told = examine(tmp_path, capsys)
    (finding,) = [one for one in told["findings"] if one["check"] == "drops"]
    assert advice in finding["advice"]
    assert ("fewer" in finding["advice"]) == (what in ("span.overload", "session.slow_sink"))


def test_missing_frames_are_counted(tmp_path: Path, capsys: Out) -> None:
    one_process(tmp_path, make_batch(3))
    assert "2 frames" in said(tmp_path, capsys, "frames")[0]


@pytest.mark.parametrize(
    ("trainers", "rollouts", "gaps"),
    [
        ((), (0, 1, 4), "up to 4, but 2 and 3 recorded nothing"),
        ((0, 1), (2, 3), ""),
        ((0, 1), (2, 4), "up to 4, but 3 recorded nothing"),
        ((0,), (2, 3), "up to 3, but 1 recorded nothing"),
        ((0, 1), (0, 1), ""),
    ],
)
def test_missing_ranks_are_named(
    tmp_path: Path,
    capsys: Out,
    trainers: tuple[int, ...],
    rollouts: tuple[int, ...],
    gaps: str,
) -> None:
    roles = [("trainer", rank) for rank in trainers] + [("rollout", rank) for rank in rollouts]
    for number, (role, rank) in enumerate(roles, 1):
        header = make_header(role=role, rank=rank)
        batch = make_batch(0, process=bytes([0] * 7 + [number]), header=header)
        write_log(tmp_path / "log" / f"{number}.rsl", [batch])
    found = said(tmp_path, capsys, "ranks")
    assert len(found) == bool(gaps)
    assert gaps in "".join(found)


def test_steps_that_a_second_start_recorded_anew_are_told(tmp_path: Path, capsys: Out) -> None:
    for start in ([0, 1, 2], [1, 2, 3]):
        rs.init(run="again", dir=tmp_path, role="trainer", rank=0)
        for number in start:
            with rs.step(number):
                pass
        rs.shutdown()
    (sentence,) = said(tmp_path / "again", capsys, "restarts")
    assert sentence.startswith("Steps 1 to 2 were recorded twice: the program was started again")


def test_lost_ends_are_told(tmp_path: Path, capsys: Out) -> None:
    beat = Heartbeat(number_column([]))
    one_process(
        tmp_path,
        make_batch(1, spans=make_columns(make_row(1, status=Status.OPEN))),
        make_batch(2, mono_ns=2 * SECOND, heartbeat=beat),
        make_batch(3, mono_ns=3 * SECOND, heartbeat=beat),
    )
    assert "began and never ended" in said(tmp_path, capsys, "ends")[0]


def test_damage_and_torn_ends_are_told_apart(tmp_path: Path, capsys: Out) -> None:
    one_process(tmp_path, make_batch(1), header=dead_header(), tail=b"RSF1 torn")
    (torn,) = said(tmp_path, capsys, "logs")
    assert "9 bytes at the end of a.rsl" in torn
    one_process(tmp_path / "b", make_batch(1), make_batch(2))
    log = tmp_path / "b" / "log" / "a.rsl"
    data = bytearray(log.read_bytes())
    data[30] ^= 0xFF
    log.write_bytes(data)
    (damaged,) = said(tmp_path / "b", capsys, "logs")
    assert "cannot be read" in damaged
    assert said(tmp_path / "b", capsys, "files") == [
        "run.json is missing or cannot be read, so when the run began is guessed."
    ]


def test_a_damaged_segment_is_found_only_by_reading_it(tmp_path: Path, capsys: Out) -> None:
    generate_run(tmp_path, CALM)
    assert main(["compact", str(tmp_path)]) == 0
    capsys.readouterr()
    (path,) = (tmp_path / "segments").glob("spans*.parquet")
    data = bytearray(path.read_bytes())
    data[10:400] = bytes(390)
    path.write_bytes(data)
    code, answer = examine(tmp_path, capsys)
    assert code == 1
    (finding,) = (each for each in answer["findings"] if each["check"] == "segments")
    assert path.name in finding["sentence"]
    assert "rollscope compact" in finding["advice"]
    assert "read again" in finding["advice"]


def test_mixed_versions_are_told(tmp_path: Path, capsys: Out) -> None:
    for number, version in ((1, "0.1.0"), (2, "0.0.9")):
        batch = make_batch(
            0, process=bytes([0] * 7 + [number]), header=make_header(version=version)
        )
        write_log(tmp_path / "log" / f"{number}.rsl", [batch])
    assert "0.0.9, 0.1.0" in said(tmp_path, capsys, "versions")[0]


def test_a_full_disk_is_told(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    generate_run(tmp_path, CALM)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**9))
    assert said(tmp_path, capsys, "disk") == ["1.0 GB of 1,000 GB are left where the run is."]


def test_an_empty_run_says_what_to_look_for(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "log").mkdir()
    code, answer = examine(tmp_path, capsys)
    assert code == 1
    assert "rollscope.init" in answer["findings"][0]["advice"]


def test_every_finding_says_what_to_do_and_names_cannot_play_tricks(
    tmp_path: Path, capsys: Out
) -> None:
    header = make_header(role="\x1b[2J\u202eevil", rank=3, host="\x07host")
    one_process(tmp_path, make_batch(5, drops={"\x1b]0;x": 1}), header=header)
    _, answer = examine(tmp_path, capsys)
    assert len(answer["findings"]) > 3
    assert all(each["advice"] and each["sentence"][-1] == "." for each in answer["findings"])
    assert main(["doctor", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "evil" in out
    assert all(char.isprintable() or char == "\n" for char in out)
