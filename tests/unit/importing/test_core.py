import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollscope.errors import CommandError
from rollscope.importing import passes, reading
from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.reading import MOST_LINE_BYTES, Line, Reader
from rollscope.importing.recognising import Found, recognise
from rollscope.importing.running import import_run
from rollscope.importing.sources import Source, find_sources
from rollscope.store.embedded import RunStore

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_SAMPLE = _FIXTURES / "areal" / "session_tracer" / "rollout" / "sessions-r0.jsonl"


def _session(number: int, **more: Any) -> dict[str, Any]:
    start = 1763000000.5 + number
    phases = {"generate": [{"start_ts": start, "end_ts": start + 1}]}
    return {
        "task_id": number,
        "session_id": number,
        "rank": 0,
        "role": "rollout",
        "status": "accepted",
        "submit_ts": start,
        "finalized_ts": start + 2,
        "phases": phases,
        **more,
    }


def _write(path: Path, *records: object) -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def _source(path: Path) -> Source:
    (source,) = find_sources([path])
    return source


def _lines(path: Path) -> list[Line]:
    reader = Reader(_source(path))
    try:
        return list(reader.lines())
    finally:
        reader.close()


def _only(report: Report) -> FileAccount:
    (file,) = report.files
    assert file.read == file.imported + file.duplicates + sum(
        one.count for one in file.set_aside.values()
    )
    return file


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


# Lines


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_lines_are_the_same_packed_or_not(ending: str, tmp_path: Path) -> None:
    plain = b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"b": 2}\r\n{"c": 3}'
    packed = {"": plain, ".gz": gzip.compress(plain), ".zst": _zstd(plain)}
    path = tmp_path / f"x.jsonl{ending}"
    path.write_bytes(packed[ending])
    assert _lines(path) == [
        Line(1, b'{"a": 1}'),
        Line(4, b'{"b": 2}'),
        Line(5, b'{"c": 3}', "torn"),
    ]


def test_a_line_over_the_bound_is_passed_over_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_LINE_BYTES == 64 * 1024 * 1024
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 100)
    monkeypatch.setattr(reading, "_CHUNK", 64)
    path = _write(tmp_path / "x.jsonl", "a" * 100, "b" * 101, "c" * 300, "d", "e" * 500)
    path.write_bytes(path.read_bytes()[:-1])
    troubles = [(line.number, line.raw[:1], line.trouble) for line in _lines(path)]
    long = "bad: longer than 64 MiB"
    assert troubles == [
        (1, b"a", ""),
        (2, b"", long),
        (3, b"", long),
        (4, b"d", ""),
        (5, b"", long),
    ]


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 20])
def test_lines_do_not_depend_on_how_much_is_read_at_once(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", size)
    path = _write(tmp_path / "x.jsonl", "one", "", "two and more", "\n", "three")
    assert [(line.number, line.raw) for line in _lines(path)] == [
        (1, b"one"),
        (3, b"two and more"),
        (6, b"three"),
    ]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_packed_file_that_was_cut_off_gives_what_it_has(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending == ".gz" else _zstd
    numbers = b"".join(b"%d %s\n" % (n, os.urandom(40).hex().encode()) for n in range(50_000))
    data = pack(numbers)
    path = tmp_path / f"x.jsonl{ending}"
    path.write_bytes(data[: len(data) // 2])
    lines = _lines(path)
    assert 1_000 < len(lines) < 49_000
    assert lines[0].raw.startswith(b"0 ")
    assert [line.trouble for line in lines[:-2]] == [""] * (len(lines) - 2)
    assert lines[-1].trouble


def test_a_file_that_only_claims_to_be_packed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(b"no gzip at all")
    with pytest.raises(CommandError, match="no format that is known"):
        import_run([path], tmp_path / "run")


# Accounts


def test_lines_that_cannot_be_read_are_told_by_number(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = json.dumps(_session(1)).encode()
    nothing = json.dumps({"session_id": 2, "submit_ts": None}).encode()
    foreign = b'{"hello": "world"}'
    parts = (good, b'{"\xff": 1}', b"[1, 2]", nothing, foreign, b"\x00\x01", b"[" * 100_000)
    path.write_bytes(b"\n".join(parts) + b"\n")
    file = _only(import_run([path], tmp_path / "run"))
    assert (file.read, file.imported) == (7, 1)
    assert {why: one.lines for why, one in file.set_aside.items()} == {
        "bad: no JSON object": [2, 3, 6, 7],
        "bad: no session id or no time": [4],
        "of no format that is read": [5],
    }


@pytest.mark.parametrize(("bad", "warns"), [(1, False), (2, True)])
def test_more_than_five_in_a_hundred_bad_lines_are_a_warning(
    bad: int, warns: bool, tmp_path: Path
) -> None:
    records = [_session(number) for number in range(20 - bad)]
    path = _write(tmp_path / "x.jsonl", *records, *["{"] * bad)
    report = import_run([path], tmp_path / "run")
    told = [warning for warning in report.warnings() if "cannot be read" in warning]
    assert told == ([f"{path}: 2 of 20 records cannot be read"] if warns else [])


def test_a_last_line_without_its_end_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path, run = tmp_path / "x.jsonl", tmp_path / "run"
    whole = "".join(json.dumps(_session(number)) + "\n" for number in range(3))
    path.write_text(whole[:-50])
    first = _only(import_run([path], run))
    assert (first.imported, first.set_aside["torn"].lines) == (2, [3])
    path.write_text(whole)
    second = _only(import_run([path], run))
    assert (second.imported, second.set_aside) == (3, {})
    assert len(_ask(run, "SELECT 1 FROM spans WHERE kind = 'session'")) == 3


def test_numbers_may_be_spelt_in_any_way(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "x.jsonl",
        _session(1, task_id=7, rank=0),
        _session(2, task_id="7", rank="0"),
        _session(3, task_id=7.0, rank=0.0),
        _session(4, task_id=2**53 + 1, submit_ts="1763000004.25"),
        _session(5, task_id=str(2**53 + 1), submit_ts=1763000005),
        _session(6, task_id=True, rank=True),
    )
    report = import_run([path], tmp_path / "run")
    assert _only(report).imported == 6
    rows = _ask(
        tmp_path / "run",
        "SELECT task_key, count(*) AS n FROM spans WHERE kind = 'session' GROUP BY 1 ORDER BY 1",
    )
    assert [(row["task_key"], row["n"]) for row in rows] == [
        ("6", 1),
        ("7", 3),
        (str(2**53 + 1), 2),
    ]


def test_numbers_without_a_size_are_read_as_none_and_flagged(tmp_path: Path) -> None:
    odd = json.dumps(_session(1, reward=float("nan"), speed=float("-inf")))
    assert "NaN" in odd
    path = _write(tmp_path / "x.jsonl", odd, _session(2))
    assert _only(import_run([path], tmp_path / "run")).imported == 2
    rows = _ask(
        tmp_path / "run",
        "SELECT attrs::VARCHAR AS attrs FROM spans WHERE kind = 'session' ORDER BY start_ns",
    )
    assert ["source_not_finite" in row["attrs"] for row in rows] == [True, False]


# Files


def test_rotated_and_packed_pieces_of_a_folder_are_read_and_others_left(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / ".hidden").mkdir(parents=True)
    (folder / "deep").mkdir()
    names = ("s.jsonl", "s.jsonl.1", "s.jsonl.2.gz", "deep/s.1.jsonl", "s.jsonl.zst")
    for number, name in enumerate(names):
        data = json.dumps(_session(number)).encode() + b"\n"
        pack = gzip.compress if name.endswith(".gz") else _zstd if name.endswith(".zst") else bytes
        (folder / name).write_bytes(pack(data))
    for name in ("model.safetensors", ".s.jsonl", ".hidden/s.jsonl"):
        (folder / name).write_text(json.dumps(_session(99)) + "\n")
    report = import_run([folder], tmp_path / "run")
    assert sorted(Path(file.path).name for file in report.files) == sorted(
        Path(name).name for name in names
    )
    assert report.counts["sessions accepted"] == 5


def test_a_file_that_is_named_twice_or_linked_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = _write(folder / "s.jsonl", _session(1))
    (folder / "again.jsonl").symlink_to(path)
    report = import_run([path, folder, f"{folder}/*.jsonl"], tmp_path / "run")
    assert [file.imported for file in report.files] == [1]


def test_links_in_a_circle_and_links_to_nowhere_end(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "inner").mkdir(parents=True)
    _write(folder / "inner" / "s.jsonl", _session(1))
    (folder / "inner" / "up").symlink_to(folder)
    (folder / "nowhere.jsonl").symlink_to(tmp_path / "gone")
    os.mkfifo(folder / "pipe.jsonl")
    report = import_run([folder], tmp_path / "run")
    notes = {Path(file.path).name: file.note for file in report.files}
    assert notes == {
        "s.jsonl": "",
        "nowhere.jsonl": "it cannot be read: No such file or directory",
    }
    assert report.counts["sessions accepted"] == 1


def test_runs_of_ours_in_a_folder_are_not_taken_for_foreign_files(tmp_path: Path) -> None:
    _write(tmp_path / "s.jsonl", _session(1))
    import_run([tmp_path / "s.jsonl"], tmp_path / "runs" / "first")
    assert [source.path.name for source in find_sources([tmp_path])] == ["s.jsonl"]


def test_a_folder_with_nothing_in_it_says_what_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match=r"no file ends in \.json, \.jsonl"):
        import_run([tmp_path / "empty"], tmp_path / "run")
    with pytest.raises(CommandError, match="no such file or folder"):
        import_run([tmp_path / "absent*.jsonl"], tmp_path / "run")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(CommandError, match="it is empty"):
        import_run([tmp_path / "empty.jsonl"], tmp_path / "run")
    assert sorted(os.listdir(tmp_path)) == ["empty", "empty.jsonl"]


def test_a_file_that_may_not_be_read_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = _write(tmp_path / "good.jsonl", _session(1))
    locked = _write(tmp_path / "locked.jsonl", _session(2))

    def judge(source: Source) -> Found:
        if source.path == locked:
            raise PermissionError(13, "Permission denied")
        return recognise(source)

    monkeypatch.setattr(passes, "recognise", judge)
    report = import_run([good, locked], tmp_path / "run")
    assert [file.imported for file in report.files] == [1, 0]
    assert list(report.warnings()) == [f"{locked}: it cannot be read: Permission denied"]


def test_a_file_that_vanishes_meanwhile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _write(tmp_path / "a.jsonl", *(_session(number) for number in range(3)))
    gone = _write(tmp_path / "b.jsonl", _session(9))

    def vanish(done: int, total: int) -> None:
        gone.unlink(missing_ok=True)

    monkeypatch.setattr(passes, "_TELL_EVERY", 1)
    report = import_run([kept, gone], tmp_path / "run", progress=vanish)
    assert [file.imported for file in report.files] == [3, 0]
    assert "cannot be read any more" in report.files[1].note


def test_data_of_two_runs_is_told(tmp_path: Path) -> None:
    sample = (_FIXTURES / "xtuner_otlp" / "traces.jsonl").read_text()
    other = sample.replace("20261115-064558-10338-c3c675ca", "another")
    other = re.sub(r'"traceId": ?"..', '"traceId":"ff', other)
    (tmp_path / "a.jsonl").write_text(sample)
    (tmp_path / "b.jsonl").write_text(other)
    report = import_run([tmp_path / "a.jsonl"], tmp_path / "one")
    assert report.named_runs == ["20261115-064558-10338-c3c675ca"]
    report = import_run([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "two")
    assert report.named_runs == ["20261115-064558-10338-c3c675ca", "another"]
    assert any("the data is of 2 runs" in warning for warning in report.warnings())
