"""Runs in the formats of trace viewers, read back by readers of their own."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.cli.main import main
from rollscope.exporting.chrome import write_chrome
from rollscope.exporting.perfetto import write_perfetto
from rollscope.exporting.reading import PlacedRun
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run
from tests.unit.exporting.readback import Perfetto, read_chrome

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = 'a"b\\</script>\x00\x1b[31m\u202e\n\U0001f600'
SHAPE = RunShape(steps=3, tasks_per_step=6, rollout_processes=2, parallel_tools=3,
                 nested_share=0.5, outliving_share=0.3, straggling_share=0.2)  # fmt: skip


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a run in which much overlaps and some is open: its rows, and both exports."""
    path = tmp_path_factory.mktemp("exports") / "busy"
    truth = generate_run(path, SHAPE)
    with RunStore(path, now_ns=truth.end_ns) as store, PlacedRun(store) as run:
        rows = store.query("SELECT * FROM spans").to_pylist()
        files = {}
        for name, write in (("chrome", write_chrome), ("perfetto", write_perfetto)):
            sink = io.BytesIO()
            write(run, sink)
            files[name] = sink.getvalue()
        pairs = io.BytesIO()
        write_chrome(run, pairs, as_async=True)
        return rows, files | {"async": pairs.getvalue()}, run.exported


def _ns(us: Decimal) -> int:
    assert us.as_tuple().exponent == -3
    return int(us * 1000)


def _truth(rows: list[dict[str, Any]]) -> list[tuple[str, int, int | None]]:
    ends = [None if row["status"] == "open" else row["end_ns"] for row in rows]
    told = [(row["name"], row["start_ns"], end) for row, end in zip(rows, ends, strict=True)]
    return sorted(told, key=str)


def test_chrome_has_every_span_once_to_the_nanosecond(busy: Any) -> None:
    rows, files, exported = busy
    trace = read_chrome(files["chrome"])
    base = trace["baseTimeNanoseconds"]
    found = [
        (
            one["name"],
            base + _ns(one["ts"]),
            None if one["ph"] == "B" else base + _ns(one["ts"]) + _ns(one["dur"]),
        )
        for one in trace["traceEvents"]
        if one["ph"] in "XB"
    ]
    assert sorted(found, key=str) == _truth(rows)
    assert exported.open == sum(row["status"] == "open" for row in rows) > 0


def test_chrome_never_has_overlapping_spans_on_one_track(busy: Any) -> None:
    tracks = defaultdict(list)
    for one in read_chrome(busy[1]["chrome"])["traceEvents"]:
        if one["ph"] == "X":
            tracks[one["pid"], one["tid"]].append((_ns(one["ts"]), _ns(one["ts"] + one["dur"])))
    for spans in tracks.values():
        for at, (_, end) in enumerate(spans):
            for later_start, later_end in spans[at + 1 :]:
                assert end <= later_start or later_end <= end


def test_chrome_names_come_first_then_all_by_time(busy: Any) -> None:
    phases = [one["ph"] for one in read_chrome(busy[1]["chrome"])["traceEvents"]]
    assert "M" not in phases[phases.index("X") :]
    times = [one["ts"] for one in read_chrome(busy[1]["chrome"])["traceEvents"] if "ts" in one]
    assert times == sorted(times)


def test_arrows_lead_from_parents_to_children_on_other_tracks(busy: Any) -> None:
    events = read_chrome(busy[1]["chrome"])["traceEvents"]
    starts = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert starts.keys() == ends.keys() != set()
    assert all(starts[key]["tid"] != ends[key]["tid"] for key in starts)
    assert all(starts[key]["ts"] <= ends[key]["ts"] for key in starts)
    perfetto = Perfetto(busy[1]["perfetto"])
    assert {f"0x{key:x}" for key in perfetto.starts} == set(starts)
    assert perfetto.ends.keys() == perfetto.starts.keys()


def test_pairs_begin_and_end_once_each(busy: Any) -> None:
    rows, files, exported = busy
    events = read_chrome(files["async"])["traceEvents"]
    begun = [one["id"] for one in events if one["ph"] == "b"]
    ended = [one["id"] for one in events if one["ph"] == "e"]
    assert len(begun) == len(set(begun)) == len(rows)
    assert len(ended) == len(set(ended)) == len(rows) - exported.open
    times = [one["ts"] for one in events if "ts" in one]
    assert times == sorted(times)


def test_perfetto_has_every_span_once_to_the_nanosecond(busy: Any) -> None:
    rows, files, _ = busy
    found = [(name, start, end) for _, start, end, name in Perfetto(files["perfetto"]).slices]
    assert sorted(found, key=str) == _truth(rows)


def test_a_cut_perfetto_file_is_good_up_to_the_cut(busy: Any) -> None:
    data = busy[1]["perfetto"]
    at, read = 0, 0
    whole = Perfetto(data)
    while at < len(data) // 2:
        size, shift, step = 0, 0, at + 1
        while True:
            size |= (data[step] & 0x7F) << shift
            step, shift = step + 1, shift + 7
            if data[step - 1] < 0x80:
                break
        at, read = step + size, read + 1
    assert read > 10
    assert 0 < len(Perfetto(data[:at]).slices) < len(whole.slices)


def _record(path: Path) -> None:
    async def call(number: int) -> None:
        with rs.span(f"call {number}"):
            await asyncio.sleep(0.002)

    async def together() -> None:
        await asyncio.gather(*(call(number) for number in range(5)))

    rs.init(run=path.name, dir=path.parent)
    attrs: dict[str, Any] = {HOSTILE: HOSTILE, "status": "mine", "score": float("nan")}
    with rs.step(0), rs.task(HOSTILE), rs.session(sample=0, **attrs), rs.phase(HOSTILE):
        rs.event(HOSTILE, note=HOSTILE)
        rs.count("served", 2, pool="a")
    rs.gauge("depth", 3.5)
    asyncio.run(together())
    rs.shutdown()


def test_hostile_names_coroutines_events_and_metrics_survive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "odd"
    _record(run)
    assert main(["export", str(run), "--format", "chrome", "--gzip"]) == 0
    assert main(["export", str(run), "--format", "perfetto"]) == 0
    capsys.readouterr()
    events = read_chrome(gzip.decompress((tmp_path / "odd.json.gz").read_bytes()))["traceEvents"]
    phase = next(one for one in events if one.get("cat") == "phase")
    assert phase["name"] == HOSTILE
    session = next(one for one in events if one.get("cat") == "session")
    assert session["args"][HOSTILE] == HOSTILE
    assert "mine" in (session["args"].get("status"), session["args"].get("attr.status"))
    calls = [one["tid"] for one in events if one["name"].startswith("call")]
    assert len(set(calls)) == len(calls) == 5
    counted = {one["name"]: one["args"]["value"] for one in events if one["ph"] == "C"}
    assert (counted["served{pool=a}"], counted["depth"]) == (2, Decimal("3.5"))
    perfetto = Perfetto((tmp_path / "odd.pftrace").read_bytes())
    assert HOSTILE in [name for _, _, _, name in perfetto.slices]
    assert [name for _, name in perfetto.instants] == [HOSTILE]
    assert ("depth", 3.5) in [(title, value) for title, _, value in perfetto.counters]


def test_a_file_is_not_replaced_unless_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=1))
    (tmp_path / "run.json").write_text("mine")
    assert main(["export", str(tmp_path / "run"), "--format", "chrome"]) == 1
    assert (tmp_path / "run.json").read_text() == "mine"
    assert "-o" in capsys.readouterr().err
    named = ["-o", str(tmp_path / "run.json")]
    assert main(["export", str(tmp_path / "run"), "--format", "chrome", *named]) == 0
    assert read_chrome((tmp_path / "run.json").read_bytes())["otherData"]["run"] == "run"


def test_options_of_another_format_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=1))
    asked = ["export", str(tmp_path / "run"), "--format", "perfetto", "--endpoint", "http://x"]
    assert main(asked) == 2
    assert "--endpoint goes with --format otlp" in capsys.readouterr().err


def test_a_scope_keeps_its_steps_only(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    generate_run(tmp_path / "run", RunShape(steps=3, tasks_per_step=2))
    asked = ["export", str(tmp_path / "run"), "--format", "chrome", "--scope", "1", "-o", "-"]
    assert main(asked) == 0
    events = read_chrome(capsysbinary.readouterr().out)["traceEvents"]
    assert {one["args"]["step"] for one in events if one["ph"] in "XB"} == {1}
