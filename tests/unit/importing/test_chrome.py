"""Chrome traces of no particular writer: phases, pairs, tracks, clocks, hostile values."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import CommandError
from rollscope.importing.accounts import Report
from rollscope.importing.chrome_pairs import Begun, Pairs
from rollscope.importing.formats import Options
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_EPOCH_US = 1_794_725_158_900_000


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _event(phase: str, at_us: float, name: str | None = "work", **more: Any) -> dict[str, Any]:
    event = {"ph": phase, "ts": _EPOCH_US + at_us, "pid": 1, "tid": 1, **more}
    return event if name is None else {"name": name, **event}


def _span(at_us: float, length_us: float, name: str = "work", **more: Any) -> dict[str, Any]:
    return _event("X", at_us, name, dur=length_us, **more)


def _import(tmp_path: Path, events: list[Any], options: Options | None = None) -> Report:
    (tmp_path / "trace.json").write_text(json.dumps(events))
    return import_run([tmp_path / "trace.json"], tmp_path / "run", options=options)


def _lengths(tmp_path: Path) -> list[tuple[str, int, int | None]]:
    """Give names, starts and ends in microseconds."""
    rows = _ask(
        tmp_path / "run", "SELECT name, start_ns, end_ns FROM spans ORDER BY start_ns, name"
    )
    zero = _EPOCH_US * 1000
    return [
        (
            row["name"],
            (row["start_ns"] - zero) // 1000,
            None if row["end_ns"] is None else (row["end_ns"] - zero) // 1000,
        )
        for row in rows
    ]


@pytest.mark.parametrize("form", ["array", "object", "late", "lines", "unterminated", "gz"])
def test_every_form_of_file_gives_the_same_spans(tmp_path: Path, form: str) -> None:
    events = [_span(at, 10, f"n{at}", args={"at": at}) for at in range(0, 100, 20)]
    path = tmp_path / ("trace.json.gz" if form == "gz" else "trace.json")
    forms = {
        "array": json.dumps(events, indent=1),
        "object": json.dumps({"displayTimeUnit": "ms", "traceEvents": events}),
        "late": json.dumps({"note": "traceEvents", "traceEvents": events, "z": [1]}, indent=1),
        "lines": "\n".join(map(json.dumps, events)) + "\n",
        "unterminated": "[\n" + ",\n".join(map(json.dumps, events)) + ",\n",
    }
    text = forms.get(form, forms["object"]).encode()
    path.write_bytes(gzip.compress(text) if form == "gz" else text)
    report = import_run([path], tmp_path / "run")
    assert (report.files[0].read, report.files[0].imported) == (5, 5)
    assert _lengths(tmp_path) == [(f"n{at}", at, at + 10) for at in range(0, 100, 20)]


def test_nanoseconds_and_zero_lengths_survive(tmp_path: Path) -> None:
    document = {
        "baseTimeNanoseconds": 1_700_000_000_000_000_001,
        "traceEvents": [_event("X", 0, ts=0.0, dur=0.0), _event("X", 0, ts=1.234, dur=0.001)],
    }
    (tmp_path / "trace.json").write_text(json.dumps(document))
    report = import_run([tmp_path / "trace.json"], tmp_path / "run")
    rows = _ask(tmp_path / "run", "SELECT start_ns, end_ns, status FROM spans ORDER BY start_ns")
    zero = 1_700_000_000_000_000_001
    assert rows == [
        {"start_ns": zero, "end_ns": zero, "status": "ok"},
        {"start_ns": zero + 1234, "end_ns": zero + 1235, "status": "ok"},
    ]
    assert [domain.clock for domain in report.domains] == ["anchored"]


def test_an_end_closes_the_newest_beginning_of_its_name_else_the_newest(tmp_path: Path) -> None:
    report = _import(
        tmp_path,
        [
            _event("B", 0, "a"),
            _event("B", 1, "b"),
            _event("B", 2, "a"),
            _event("E", 3, "b"),
            _event("E", 4, "a"),
            _event("E", 5, None),
            _event("E", 6, "a"),
            _event("B", 7, "never"),
        ],
    )
    assert _lengths(tmp_path) == [("a", 0, 5), ("b", 1, 3), ("a", 2, 4), ("never", 7, None)]
    (file,) = report.files
    assert (file.read, file.imported) == (8, 7)
    assert file.set_aside["an end without a beginning"].lines == [7]
    assert report.counts == {"spans": 3, "spans without an end": 1}


def test_beginnings_and_ends_in_any_order_are_matched_by_their_times(tmp_path: Path) -> None:
    report = _import(
        tmp_path, [_event("E", 5), _event("B", 0), _event("E", 20), _event("B", 10), _event("E", 9)]
    )
    assert _lengths(tmp_path) == [("work", 0, 5), ("work", 10, 20)]
    (file,) = report.files
    assert (file.read, file.imported) == (5, 4)
    assert file.set_aside["an end without a beginning"].lines == [5]


def test_a_flood_of_beginnings_without_ends_is_bounded(tmp_path: Path) -> None:
    flood = [_event("B", at, f"n{at}", tid=at % 3) for at in range(12_000)]
    report = _import(tmp_path, [*flood, _event("E", 12_001, "n11999", tid=11_999 % 3)])
    (file,) = report.files
    assert (file.read, file.imported) == (12_001, 10_002)
    assert [one.count for one in file.set_aside.values()] == [1_999]
    assert report.counts == {"spans": 1, "spans without an end": 10_000}


def test_the_oldest_beginnings_are_given_up_when_too_much_is_held() -> None:
    pairs: Pairs[int] = Pairs(most_bytes=10_000)
    given_up = [pairs.begin("here", Begun(f"n{at % 2}", at, 488)) for at in range(25)]
    assert [one.what for one in given_up if one is not None] == list(range(15))
    closed = [pairs.end("here", name) for name in ("n1", "n0", "n0", "unknown")]
    assert [one.what for one in closed if one is not None] == [23, 24, 22, 21]
    assert sorted(one.what for one in pairs.drain()) == list(range(15, 21))
    assert pairs.end("here", "n0") is None


def test_arguments_of_the_end_are_added(tmp_path: Path) -> None:
    _import(tmp_path, [_event("B", 0, args={"a": 1, "b": 1}), _event("E", 1, args={"b": 2})])
    (row,) = _ask(tmp_path / "run", "SELECT attrs FROM spans")
    assert {"a": 1, "b": 2}.items() <= json.loads(row["attrs"]).items()


def test_asynchronous_spans_are_matched_by_category_and_id(tmp_path: Path) -> None:
    one, two = {"cat": "c", "id": "0x1"}, {"cat": "d", "id": "0x1"}
    far = {"cat": "c", "id2": {"global": 7}}
    report = _import(
        tmp_path,
        [
            _event("b", 0, "one", **one),
            _event("b", 1, "two", **two),
            _event("b", 2, "far", **far),
            _event("n", 3, "mark", **one),
            _event("e", 4, "one", **one, tid=9),
            _event("e", 5, "two", **two),
            _event("e", 6, "far", **far) | {"pid": 2},
            _event("e", 7, "one", **one) | {"pid": 2},
            _event("S", 8, "old", **one),
            _event("T", 9, "old", **one),
            _event("F", 10, "old", **one),
        ],
    )
    assert _lengths(tmp_path) == [("one", 0, 4), ("two", 1, 5), ("far", 2, 6), ("old", 8, 10)]
    marks = _ask(
        tmp_path / "run",
        "SELECT e.name, s.name AS inside FROM events e JOIN spans s ON e.parent_id = s.span_id "
        "ORDER BY e.time_ns",
    )
    assert marks == [{"name": "mark", "inside": "one"}, {"name": "old", "inside": "old"}]
    assert report.files[0].set_aside["an end without a beginning"].lines == [8]


def test_arrows_become_links_between_the_shortest_spans(tmp_path: Path) -> None:
    arrow = {"cat": "ac2g", "id": 7}
    report = _import(
        tmp_path,
        [
            _span(0, 100, "outer"),
            _span(10, 5, "launch"),
            _span(40, 30, "kernel", tid=2),
            _event("s", 10, "ac2g", **arrow),
            _event("f", 40, "ac2g", **arrow, tid=2, bp="e"),
            _event("f", 500, "ac2g", **arrow, tid=2, bp="e"),
        ],
    )
    rows = _ask(
        tmp_path / "run",
        "SELECT s.name, f.facts FROM facts f JOIN spans s USING (span_id)",
    )
    (launch,) = _ask(tmp_path / "run", "SELECT span_id, trace_id FROM spans WHERE name = 'launch'")
    link = f"00-{launch['trace_id'].hex()}-{launch['span_id']:016x}-01"
    assert [(row["name"], json.loads(row["facts"])) for row in rows] == [
        ("kernel", {"links": [link]})
    ]
    assert (report.counts["arrows"], report.counts["arrows without a span"]) == (3, 1)


def test_instants_counters_and_names(tmp_path: Path) -> None:
    report = _import(
        tmp_path,
        [
            *(_event(phase, 1, f"at {phase}") for phase in "iIR"),
            _event("C", 2, "memory", args={"used": 5, "free": "7", "bad": "x", "nan": None}),
            _event("C", 3, "depth", args={"value": 4.5}, id=3),
            _event("C", 4, "empty", args={}),
            _event("M", 0, "process_name", args={"name": "trainer"}),
            _event("M", 0, "thread_name", args={"name": "main"}),
            _event("P", 5),
            _span(0, 1),
        ],
    )
    names = [row["name"] for row in _ask(tmp_path / "run", "SELECT name FROM events ORDER BY name")]
    assert names == ["at I", "at R", "at i"]
    samples = _ask(
        tmp_path / "run", "SELECT type, name, labels, value, time_ns FROM metrics ORDER BY value"
    )
    zero = _EPOCH_US * 1000
    assert [tuple(sample.values()) for sample in samples] == [
        ("gauge", "depth", '{"id":"3"}', 4.5, zero + 3000),
        ("gauge", "memory", '{"series":"used"}', 5.0, zero + 2000),
        ("gauge", "memory", '{"series":"free"}', 7.0, zero + 2000),
    ]
    (span,) = _ask(tmp_path / "run", "SELECT lane FROM spans")
    assert span["lane"] == "trainer main"
    assert {why: one.lines for why, one in report.files[0].set_aside.items()} == {
        "bad: a counter without a number": [6],
        "an event of phase P": [9],
    }


def test_spans_that_overlap_on_a_track_stay_apart(tmp_path: Path) -> None:
    _import(tmp_path, [_span(0, 10, "a"), _span(5, 10, "b")])
    assert _lengths(tmp_path) == [("a", 0, 10), ("b", 5, 15)]
    rows = _ask(tmp_path / "run", "SELECT parent_id, lane FROM spans")
    assert rows == [{"parent_id": None, "lane": "process 1"}] * 2


def test_tracks_may_be_texts_or_nothing(tmp_path: Path) -> None:
    places = [(None, None), ("worker", "main"), (1, "1"), ("1", 1), (2.0, [3]), ({"a": 1}, True)]
    report = _import(
        tmp_path, [_span(0, 1, pid=pid, tid=tid) for pid, tid in places] + [_span(5, 1, pid=2)]
    )
    assert report.files[0].imported == 7
    assert [domain.name for domain in report.domains] == [
        *("process None", "worker", "process 1", "1", "process 2", "{'a': 1}")
    ]


def test_times_after_no_known_zero_are_unanchored(tmp_path: Path) -> None:
    report = _import(tmp_path, [_span(0, 10, ts=5), _event("C", 0, "c", ts=7, args={"value": 1})])
    assert [domain.clock for domain in report.domains] == ["unanchored"]
    (span,) = _ask(tmp_path / "run", "SELECT start_ns, attrs FROM spans")
    (sample,) = _ask(tmp_path / "run", "SELECT time_ns FROM metrics")
    assert json.loads(span["attrs"])["clock"] == "unanchored"
    assert sample["time_ns"] - span["start_ns"] == 2000


def test_a_file_and_its_packed_copy_count_once(tmp_path: Path) -> None:
    events = [_span(0, 1), _span(0, 1), _event("B", 3), _event("B", 3), _event("E", 4)]
    (tmp_path / "a.json").write_text(json.dumps(events))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(events).encode()))
    report = import_run([tmp_path], tmp_path / "run")
    assert [(file.read, file.imported, file.duplicates) for file in report.files] == [
        (5, 4, 1),
        (5, 0, 5),
    ]
    assert len(_ask(tmp_path / "run", "SELECT 1 FROM spans")) == 3


def test_short_spans_are_left_out_on_request_and_counted(tmp_path: Path) -> None:
    events = [_span(0, 10), _span(20, 9.999), _event("B", 40), _event("E", 41)]
    report = _import(tmp_path, events, Options(min_us=10))
    (file,) = report.files
    assert (file.read, file.imported) == (4, 1)
    assert sorted(file.set_aside["shorter than 10 µs"].lines) == [2, 3, 4]


def test_hostile_events_are_set_aside_or_flagged(tmp_path: Path) -> None:
    deep: Any = 0
    for _ in range(400):
        deep = [deep]
    lines = [
        '{"ph": "X", "ts": NaN, "dur": 1, "name": "nan"}',
        json.dumps({**_span(0, 1), "name": "</script>\ud800" + "x" * 2000, "id": 10**400}),
        json.dumps({"ph": "X", "ts": _EPOCH_US, "dur": -5, "pid": 1}),
        json.dumps({"ph": "X", "ts": _EPOCH_US, "pid": 1, "name": "no length"}),
        json.dumps(
            {**_span(0, 1, "deep"), "args": {"deep": deep, "wide": dict.fromkeys(range(900))}}
        ),
        json.dumps({**_span(0, 1, "many"), "args": {str(n): n for n in range(5000)}}),
        json.dumps({"ph": "X", "ts": 5, "dur": 1, "pid": 1, "name": "not on this clock"}),
        json.dumps({"ph": ["X"], "ts": _EPOCH_US, "name": 3}),
        json.dumps({"ph": "XX", "ts": _EPOCH_US, "name": {}}),
        json.dumps({"ph": "X", "ts": 1e300, "dur": 1e300, "pid": 1}),
        json.dumps({"ph": "M", "name": "thread_name", "args": 3, "pid": 10**300}),
        json.dumps({"ph": "b", "ts": _EPOCH_US, "id2": [], "id": {}, "pid": 1}),
        json.dumps({"ph": "s", "ts": "x", "id": []}),
        '{"ph": "X", "ts": 1,',
    ]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines) + "\n")
    report = import_run([tmp_path / "trace.jsonl"], tmp_path / "run")
    (file,) = report.files
    aside = sum(one.count for one in file.set_aside.values())
    assert file.read == 14 == file.imported + aside
    assert {why: one.lines for why, one in file.set_aside.items()} == {
        "bad: no time": [1, 10],
        "bad: a time that its clock does not give": [7],
        "bad: no phase": [8, 9],
        "bad: no JSON object": [14],
    }
    rows = _ask(tmp_path / "run", "SELECT name, attrs FROM spans")
    attrs = {row["name"]: json.loads(row["attrs"]) for row in rows}
    assert attrs["unnamed"].keys() >= {"tid"}
    assert attrs["no length"]["length_missing"] is True
    assert attrs["many"]["source_args"] == 5000
    assert any(name.startswith("</script>") for name in attrs)


def test_a_binary_trace_of_perfetto_is_named(tmp_path: Path) -> None:
    packets = b"".join(b"\n" + bytes([len(body)]) + body for body in (b"\x50\x01", b"\x08\x02\x01"))
    (tmp_path / "trace.bin").write_bytes(packets)
    with pytest.raises(CommandError, match=r"Perfetto's binary form.*traceconv json"):
        import_run([tmp_path / "trace.bin"], tmp_path / "run")
