from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.cli.main import main
from rollscope.model.batch import SCHEMA_VERSION, Payload
from rollscope.model.records import ProcessRecord, SpanRecord
from tests.builders import make_batch, make_columns, make_header, make_row, write_log

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give a small run that a real recorder wrote."""
    rs.init(run="small", dir=tmp_path / "runs", payloads=True)
    with rs.task("gsm8k/1 ü"), rs.session(sample=3, version=12) as session:
        with rs.phase("generate", tokens=7):
            rs.event("first-token")
        rs.payload("messages", ["hi"])
        rs.count("done")
        session.finish("accepted", reward=1.0)
    rs.shutdown()
    return tmp_path / "runs" / "small"


def records(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_each_line_is_one_record_with_the_fields_of_the_model(run: Path, capsys: Out) -> None:
    assert main(["cat", str(run)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = {record["record"]: record for record in records(out)}
    assert set(found) == {"process", "span", "event", "metric", "heartbeat", "end"}
    assert set(found["span"]) == {"record", *SpanRecord.__struct_fields__}
    of_ray = {"node", "job", "worker", "actor", "actor_name"}
    assert set(found["process"]) == {"record", *ProcessRecord.__struct_fields__} - of_ray
    (session,) = (r for r in records(out) if r.get("kind") == "session" and r["end_ns"])
    assert (session["task_key"], session["sample"], session["version_start"]) == (
        "gsm8k/1 ü",
        3,
        12,
    )
    assert (session["status"], session["outcome"]) == ("ok", "accepted")
    assert session["attrs"] == {"reward": 1.0}


def test_payloads_are_printed_only_when_asked_for(run: Path, capsys: Out) -> None:
    assert main(["cat", str(run), "--payloads"]) == 0
    (payload,) = (r for r in records(capsys.readouterr().out) if r["record"] == "payload")
    assert (payload["name"], payload["text"]) == ("messages", '["hi"]')


def test_a_run_is_found_by_name_and_by_one_of_its_logs(run: Path, capsys: Out) -> None:
    assert main(["cat", "small", "--dir", str(run.parent)]) == 0
    by_name = capsys.readouterr().out
    (log,) = (run / "log").iterdir()
    assert main(["cat", str(log)]) == 0
    assert capsys.readouterr().out == by_name != ""


def test_a_missing_run_is_told_in_one_line_with_those_there_are(run: Path, capsys: Out) -> None:
    assert main(["cat", "big", "--dir", str(run.parent)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"rollscope: there is no run 'big'; runs in {run.parent}: small\n"


@pytest.mark.parametrize("name", ["notes.txt", "foreign.rsl"])
def test_a_file_of_another_kind_is_told_in_one_line(tmp_path: Path, capsys: Out, name: str) -> None:
    (tmp_path / name).write_bytes(b"hello, world")
    assert main(["cat", str(tmp_path / name)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"rollscope: {tmp_path / name} is ")
    assert err.count("\n") == 1


def test_problems_go_to_the_error_stream_and_make_the_exit_code_1(run: Path, capsys: Out) -> None:
    (log,) = (run / "log").iterdir()
    data = bytearray(log.read_bytes())
    data[60] ^= 0xFF
    log.write_bytes(data)
    assert main(["cat", str(run)]) == 1
    out, err = capsys.readouterr()
    assert records(out)
    assert err == f"rollscope: {log} is damaged; whole frames around the damage are read\n"


def test_a_newer_schema_is_told_once_with_what_to_do(tmp_path: Path, capsys: Out) -> None:
    newer = [make_batch(number, schema=SCHEMA_VERSION + 1) for number in range(5)]
    write_log(tmp_path / "log" / "a.rsl", newer)
    assert main(["cat", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("upgrade rollscope") == 1


def test_a_torn_end_is_no_problem(run: Path, capsys: Out) -> None:
    (log,) = (run / "log").iterdir()
    with log.open("ab") as file:
        file.write(b"RSF1\xff")
    assert main(["cat", str(run)]) == 0
    assert capsys.readouterr().err == ""


def test_text_of_any_sort_stays_one_line(tmp_path: Path, capsys: Out) -> None:
    rows = make_row(1, 'a\n"b"\x1b[31m\u2028', attrs={"k\n": "v\r\n\0", "n": float("nan")})
    batches = [make_batch(0, header=make_header()), make_batch(1, spans=make_columns(rows))]
    write_log(tmp_path / "log" / "a.rsl", batches)
    assert main(["cat", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 2
    assert json.loads(out.split("\n")[1])["attrs"] == {"k\n": "v\r\n\0", "n": None}


def test_following_goes_on_until_it_is_interrupted(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log" / "a.rsl"
    batches = [make_batch(0, header=make_header())]
    write_log(log, batches)

    def grow(seconds: float) -> None:
        if len(batches) == 4:
            raise KeyboardInterrupt
        number = len(batches)
        batches.append(make_batch(number, spans=make_columns(make_row(number, f"s{number}"))))
        write_log(log, batches)

    monkeypatch.setattr(time, "sleep", grow)
    assert main(["cat", str(tmp_path), "--follow"]) == 0
    assert [r.get("name") for r in records(capsys.readouterr().out)] == [None, "s1", "s2", "s3"]


def test_payload_logs_of_a_run_may_be_missing(tmp_path: Path, capsys: Out) -> None:
    write_log(tmp_path / "log" / "a.rsl", [make_batch(0, header=make_header())])
    assert main(["cat", str(tmp_path), "--payloads"]) == 0
    payload = Payload(b"t" * 16, 1, 1, "m", "[]", False)
    write_log(tmp_path / "payloads" / "a.rsl", [make_batch(1, payloads=[payload])])
    capsys.readouterr()
    assert main(["cat", str(tmp_path), "--payloads"]) == 0
    assert len(records(capsys.readouterr().out)) == 2


def test_a_reader_that_went_away_ends_it_quietly(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["cat", str(run)]) == 0
