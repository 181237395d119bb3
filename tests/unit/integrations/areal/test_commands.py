from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rollscope.integrations.areal.__main__ import main
from rollscope.integrations.areal.converting import convert_jsonl_to_chrome_trace

SAMPLES = Path(__file__).parents[3] / "fixtures" / "areal"


def test_files_of_the_original_become_one_trace_with_its_numbers_and_names(
    tmp_path: Path,
) -> None:
    ours = convert_jsonl_to_chrome_trace(SAMPLES / "perf_tracer", tmp_path / "deep" / "out.json")
    theirs = json.loads((SAMPLES / "perf_tracer" / "traces.json").read_text())

    def shape(trace: dict[str, Any]) -> list[tuple[Any, ...]]:
        events = (event for event in trace["traceEvents"] if event["ph"] != "M")
        return sorted((e["name"], e["ts"], e.get("dur", 0), e["pid"]) for e in events)

    def processes(trace: dict[str, Any]) -> dict[int, str]:
        events = trace["traceEvents"]
        return {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}

    assert shape(ours) == shape(theirs)
    assert processes(ours) == processes(theirs)
    threads = [e["args"]["name"] for e in ours["traceEvents"] if e["name"] == "thread_name"]
    assert "MainThread" in threads
    assert json.loads((tmp_path / "deep" / "out.json").read_text()) == ours


def test_overlapping_events_of_one_thread_go_to_tracks_of_their_own(tmp_path: Path) -> None:
    place = {"ph": "X", "pid": 5, "tid": 6, "cat": "misc", "args": {"rank": 0}}
    times = [(0, 100), (10, 20), (50, 100), (120, 5)]
    lines = [json.dumps({"name": "n", "ts": ts, "dur": dur, **place}) for ts, dur in times]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + '\n{"name": "torn')
    events = convert_jsonl_to_chrome_trace(tmp_path)["traceEvents"]
    tracks = [event["tid"] for event in events if event["ph"] == "X"]
    assert tracks == [1, 1, 2, 2]


def test_clocks_that_are_anchored_meet(tmp_path: Path) -> None:
    for rank, zero in ((0, 1_000_000_000), (1, 3_000_000_000)):
        clock = {"name": "rollscope_clock", "ph": "M", "pid": 1, "args": {"unix_ns": zero}}
        event = {"name": "x", "ph": "i", "ts": 5, "pid": 1, "tid": 1, "args": {"rank": rank}}
        text = json.dumps(clock) + "\n" + json.dumps(event) + "\n"
        (tmp_path / f"traces-r{rank}.jsonl").write_text(text)
    trace = convert_jsonl_to_chrome_trace(tmp_path)
    assert [e["ts"] for e in trace["traceEvents"] if e["ph"] == "i"] == [5, 2_000_005]
    assert trace["baseTimeNanoseconds"] == 1_000_000_000


def test_nothing_of_the_input_is_overwritten(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("{}\n")
    assert main(["convert", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]) == 2
    assert (tmp_path / "b.jsonl").read_text() == "{}\n"
    with pytest.raises(FileNotFoundError):
        main(["convert", str(tmp_path / "*.none")])
    assert main(["convert", str(tmp_path / "a.jsonl")]) == 0
    assert main(["convert", str(tmp_path / "*.jsonl")]) == 0
    assert (tmp_path / "a.json").exists()
    assert (tmp_path / "traces.json").exists()


def test_odd_lines_are_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(SAMPLES.parent / "quirks" / "areal_perf_mixed.jsonl"), "-"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["traceEvents"]
    assert "1 of another kind" in told.err


def test_plots_count_every_outcome_apart_and_need_nothing_but_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLES / "session_tracer", tmp_path / "s")
    hostile = {"submit_ts": 1763000000.0, "status": "</script><b>", "session_id": 99}
    with (tmp_path / "s" / "rollout" / "sessions-r0.jsonl").open("a") as file:
        file.write(json.dumps(hostile) + "\n")
    assert main(["plot", str(tmp_path / "s"), "-B", "4", "-L", "-N", "10"]) == 0
    told = capsys.readouterr().out
    assert "65 sessions" in told
    for part in ("28 accepted", "16 rejected", "8 failed", "4 dropped", "8 pending", "step 0"):
        assert part in told
    pages = {path.name: path.read_text() for path in (tmp_path / "s").glob("*.html")}
    kinds = ["distribution-overall", "distribution-step", "latency"]
    lives = ["lifecycle-r?", "lifecycle-rollout-r0", "lifecycle-rollout-r3"]
    assert sorted(pages) == sorted(f"sessions-{name}.html" for name in kinds + lives)
    for page in pages.values():
        assert "http" not in page
        assert page.count("</script>") == 2


def test_pending_sessions_alone_give_a_page_too(tmp_path: Path) -> None:
    source = tmp_path / "sessions-r0.jsonl"
    source.write_text('{"submit_ts": 5.0, "session_id": 0}\n{"submit_ts": 6.')
    assert main(["plot", str(source), "-B", "2", "--output", str(tmp_path / "o" / "p.html")]) == 0
    names = sorted(path.name for path in (tmp_path / "o").iterdir())
    assert names == ["p-step.html", "p.html", "sessions-latency.html"]
