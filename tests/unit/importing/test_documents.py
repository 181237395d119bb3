import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing import reading
from rollscope.importing.documents import mended
from rollscope.importing.reading import Line, Reader
from rollscope.importing.recognising import recognise
from rollscope.importing.running import import_run
from rollscope.importing.sources import find_sources

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_LINES = {
    "areal-sessions": _FIXTURES / "areal/session_tracer/rollout/sessions-r0.jsonl",
    "otlp": _FIXTURES / "xtuner_otlp/traces.jsonl",
    "verifiers": _FIXTURES / "verifiers/traces.jsonl",
    "xtuner-producer": _FIXTURES / "xtuner_producer/producer_trace_19729_0001_000000.jsonl",
    "rl-insight": _FIXTURES / "rl_insight/hub_events.jsonl",
}


def _first(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(_LINES[name].read_text().splitlines()[0])
    return record


def _read(path: Path, member: str | None) -> list[Line]:
    reader = Reader(find_sources([path])[0])
    try:
        return list(reader.records(member))
    finally:
        reader.close()


def _judge(path: Path) -> tuple[str, str | None]:
    found = recognise(find_sources([path])[0])
    return found.format, found.member


@pytest.mark.parametrize("name", _LINES)
def test_a_record_written_over_many_lines_is_one_document(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("\n" + json.dumps(_first(name), indent=2) + "\n")
    assert _judge(path) == (name, "")
    (line,) = _read(path, "")
    assert json.loads(line.raw) == _first(name)


@pytest.mark.parametrize("name", _LINES)
def test_an_array_of_records_is_read_by_element(name: str, tmp_path: Path) -> None:
    records = [json.loads(line) for line in _LINES[name].read_text().splitlines()[:3]]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(records, indent=1))
    assert _judge(path) == (name, "[]")
    assert [json.loads(line.raw) for line in _read(path, "[]")] == records


def test_a_trace_of_jaeger_is_a_line_a_document_or_a_list_of_them(tmp_path: Path) -> None:
    trace = {"traceID": "1" * 32, "spans": [], "processes": {}}
    path = tmp_path / "x.json"
    for content, member in (
        (json.dumps(trace) + "\n" + json.dumps(trace), None),
        (json.dumps(trace, indent=1), ""),
        (json.dumps({"data": [trace]}), "data"),
        (json.dumps({"data": [trace]}, indent=1), "data"),
    ):
        path.write_text(content)
        assert _judge(path) == ("jaeger", member)


def test_a_document_with_one_event_on_a_line_is_not_taken_for_lines(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    path = tmp_path / "x.json"
    path.write_text('{\n"traceEvents": [\n' + json.dumps(event) + "\n]\n}\n")
    assert _judge(path) == ("chrome", "traceEvents")
    path.write_text('{"broken": \n' + json.dumps(event) + "\n" + json.dumps(event) + "\n")
    assert _judge(path)[0] == "chrome"


def test_a_document_longer_than_what_is_looked_at_is_known_by_its_beginning(tmp_path: Path) -> None:
    record = {**_first("areal-sessions"), "note": "x" * 300_000}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(record, indent=1))
    assert _judge(path) == ("areal-sessions", "")
    path.write_text(json.dumps(record) + "\n" + json.dumps(record) + "\n")
    assert _judge(path) == ("areal-sessions", None)
    path.write_text(json.dumps([record, record]))
    assert _judge(path) == ("areal-sessions", "[]")


def test_of_a_torn_document_what_there_is_stays(tmp_path: Path) -> None:
    whole = json.dumps(_first("areal-sessions"), indent=2)
    path = tmp_path / "x.json"
    path.write_text(whole[: whole.index('"phases"') + 40])
    report = import_run([path], tmp_path / "run")
    (file,) = report.files
    assert (file.read, file.imported, file.set_aside["torn"].count) == (2, 1, 1)


def test_a_document_over_the_bound_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 1000)
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**_first("areal-sessions"), "note": "x" * 2000}, indent=1))
    (file,) = import_run([path], tmp_path / "run").files
    assert list(file.set_aside) == ["bad: a document longer than 64 MiB; write it as lines"]


def test_packed_documents_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps(_first("verifiers"), indent=1).encode("utf-8-sig")))
    (line,) = _read(path, recognise(find_sources([path])[0]).member)
    assert json.loads(line.raw) == _first("verifiers")


def test_a_text_cut_anywhere_is_closed_behind_its_last_whole_value() -> None:
    value = {"a": [1, 2, {"b": 'x,}"\\', "c": None}], "d": {"e": [[], {}]}, "f": "é]"}
    text = json.dumps(value, indent=1, ensure_ascii=False).encode()
    assert mended(text) is None
    sizes = []
    for end in range(1, len(text)):
        closed = mended(text[:end])
        assert closed is not None
        sizes.append(len(json.dumps(json.loads(closed))))
    assert sizes == sorted(sizes)
    assert json.loads(mended(text[: text.index(b'"d"')]) or b"") == {"a": value["a"]}
