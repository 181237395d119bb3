from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.instrument.spans import NOOP
from rollscope.integrations import areal
from rollscope.testing import capture
from tests.unit.integrations.areal.classic import Config, perf, spans

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def test_a_scope_becomes_one_complete_event_in_the_place_and_shape_of_the_original(
    tmp_path: Path,
) -> None:
    areal.configure(Config(str(tmp_path)), rank=3, role="rollout")
    with areal.trace_scope("work", category="communication", args={"global_step": 4, "n": 1}):
        areal.instant("tick", args={"data": 64})
    areal.save(force=True)
    [path] = tmp_path.rglob("*.jsonl")
    assert path.match("logs/*/exp/trial/perf_tracer/rollout/traces-r3.jsonl")
    head, *_, tick, work = perf(tmp_path)
    assert head["name"] == "rollscope_clock"
    assert head["args"].keys() >= {"unix_ns", "monotonic_ns", "host", "pid", "run_id", "rank"}
    assert list(work) == ["name", "ph", "ts", "dur", "pid", "tid", "cat", "args"]
    assert work["args"] == {"global_step": 4, "n": 1, "rank": 3, "role": "rollout"}
    assert work["cat"] == "comm"
    assert isinstance(work["ts"], int)
    assert work["dur"] >= 1
    assert (tick["ph"], tick["s"], tick["cat"]) == ("i", "t", "misc")
    assert tick["args"]["global_step"] == 4
    names = {event["name"]: event["args"] for event in perf(tmp_path) if event["ph"] == "M"}
    assert names["process_name"]["name"] == "[rollout] Rank 3, Process"
    assert names["process_sort_index"]["sort_index"] == 3
    assert names["thread_name"] == {"name": "MainThread", "rank": 3, "role": "rollout"}


def test_a_dictionary_does_for_a_config_and_the_environment_is_put_into_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(tmp_path))
    config = {"experiment_name": "e", "trial_name": "t", "fileroot": "$PLACE/x", "enabled": True}
    areal.configure(config, rank=0)
    with areal.trace_scope("work"):
        pass
    areal.save(force=True)
    assert list((tmp_path / "x").rglob("e/t/perf_tracer/traces-r0.jsonl"))
    assert "role" not in spans(tmp_path)["work"]["args"]


@pytest.mark.parametrize("missing", ["experiment_name", "trial_name", "fileroot"])
def test_a_config_without_a_name_is_refused(tmp_path: Path, missing: str) -> None:
    config = {"experiment_name": "e", "trial_name": "t", "fileroot": str(tmp_path), missing: "???"}
    with pytest.raises(ValueError, match=missing):
        areal.configure(config, rank=0)
    assert not areal.is_configured()


def test_configuring_twice_names_the_way_out(tmp_path: Path) -> None:
    tracer = areal.configure(Config(str(tmp_path)), rank=0)
    assert areal.GLOBAL_TRACER is areal.get_tracer() is tracer
    with pytest.raises(RuntimeError, match="reset"):
        areal.configure(Config(str(tmp_path)), rank=0)
    areal.reset()
    assert areal.GLOBAL_TRACER is None
    with pytest.raises(RuntimeError, match="configure"):
        areal.get_tracer()


def test_bad_numbers_are_told_as_the_original_tells_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="rank"):
        areal.configure(Config(str(tmp_path)), rank=-1)
    with pytest.raises(TypeError):
        areal.configure(Config(str(tmp_path), save_interval=None), rank=0)
    with caplog.at_level(logging.WARNING, "rollscope.areal"):
        tracer = areal.configure(Config(str(tmp_path), profile_steps=[1, "x", "2"]), rank=0)
    assert tracer.settings.profile_steps == {1, 2}
    assert "'x'" in caplog.text


def test_functions_coroutines_and_generators_are_timed_to_their_end(tmp_path: Path) -> None:
    @areal.trace_perf("plain", category="io")
    def plain(value: int) -> int:
        return value + 1

    @areal.trace_perf("coroutine")
    async def coroutine() -> int:
        await asyncio.sleep(0.02)
        return 7

    @areal.trace_perf("generator")
    def generator() -> Iterator[int]:
        yield 1
        with areal.trace_scope("inside"):
            yield 2

    @areal.trace_perf("async generator")
    async def async_generator() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0.02)

    async def main() -> list[int]:
        assert await coroutine() == 7
        return [item async for item in async_generator()]

    areal.configure(Config(str(tmp_path)), rank=0)
    assert plain(1) == 2
    assert list(generator()) == [1, 2]
    assert asyncio.run(main()) == [1]
    areal.save(force=True)
    found = spans(tmp_path)
    assert found.keys() == {"plain", "coroutine", "generator", "inside", "async generator"}
    assert found["coroutine"]["dur"] >= 20_000
    assert found["async generator"]["dur"] >= 20_000
    assert found["generator"]["dur"] >= found["inside"]["dur"]


def test_exceptions_and_cancellation_pass_on_and_are_named(tmp_path: Path) -> None:
    async def hang() -> None:
        async with areal.atrace_scope("hang"):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with capture() as captured:
        areal.configure(Config(str(tmp_path)), rank=0)
        with pytest.raises(KeyError), areal.trace_scope("fail"):
            raise KeyError("x")
        asyncio.run(main())
        areal.save(force=True)
        assert captured.named("hang").status == "cancelled"
        assert captured.named("fail").status == "error"
        areal.reset()
    found = spans(tmp_path)
    assert found["fail"]["args"]["exception"] == "KeyError"
    assert found["hang"]["args"]["exception"] == "CancelledError"


def test_the_run_has_nested_spans_under_steps_of_the_trainer(tmp_path: Path) -> None:
    with capture() as captured:
        areal.configure(Config(str(tmp_path)), rank=0, role="master")
        for step in (0, 1):
            rollout = areal.trace_scope("train.rollout", args={"global_step": step})
            with rollout, areal.trace_scope("inner", category="my kind"):
                pass
            areal.save(step=step)
        areal.reset()
        found = captured.spans()
    steps = [span for span in found if span.kind == "step"]
    assert [span.step for span in steps] == [0, 1]
    assert all(span.status == "ok" for span in steps)
    rollouts = [span for span in found if span.name == "train.rollout"]
    assert [span.parent_id for span in rollouts] == [step.span_id for step in steps]
    inner = [span for span in found if span.name == "inner"]
    assert [span.parent_id for span in inner] == [span.span_id for span in rollouts]
    assert inner[0].attrs["category"] == "my kind"
    assert not rs.enabled()


def test_values_that_json_cannot_hold_spoil_nothing_but_themselves(tmp_path: Path) -> None:
    class Tensor:
        pass

    loop: list[Any] = []
    loop.append(loop)
    areal.configure(Config(str(tmp_path)), rank=0)
    args = {"t": Tensor(), "nan": float("nan"), "cut": "\ud800", "loop": loop, 5: {1}, "ok": [1]}
    areal.instant("odd", args=args)  # type: ignore[arg-type]  # a key that is no text
    areal.instant("even", args={"rank": 9, "method": 1, "self": 2, "event": 3, "session_id": 4})
    areal.save(force=True)
    odd, even = (event["args"] for event in perf(tmp_path) if event["ph"] == "i")
    assert odd["t"] == "<Tensor>"
    assert odd["nan"] is None
    assert odd["cut"] == "\\ud800"
    assert odd["ok"] == odd["5"] == [1]
    assert even == {"rank": 9, "method": 1, "self": 2, "event": 3, "session_id": 4}


def test_what_is_changed_after_the_call_does_not_show(tmp_path: Path) -> None:
    areal.configure(Config(str(tmp_path)), rank=0)
    args: dict[str, Any] = {"turn": 1, "seen": [1]}
    with areal.trace_scope("work", args=args):
        args["turn"] = 2
        args["seen"].append(2)
    areal.save(force=True)
    written = spans(tmp_path)["work"]["args"]
    assert (written["turn"], written["seen"]) == (1, [1])


def test_only_the_last_step_of_an_interval_writes_unless_forced(tmp_path: Path) -> None:
    areal.configure(Config(str(tmp_path), save_interval=3, sync_writes=True), rank=0)
    for step in range(3):
        with areal.trace_scope(f"step {step}"):
            pass
        areal.save(step=step)
        assert len(spans(tmp_path)) == (3 if step == 2 else 0)
    areal.instant("more")
    areal.save(force=True)
    assert perf(tmp_path)[-1]["name"] == "more"


def test_reset_writes_what_was_not_saved(tmp_path: Path) -> None:
    areal.configure(Config(str(tmp_path), save_interval=100), rank=0)
    with areal.trace_scope("work"):
        pass
    areal.reset()
    assert spans(tmp_path).keys() == {"work"}


def test_when_off_nothing_is_done_and_nothing_is_written(tmp_path: Path) -> None:
    assert areal.trace_scope("x") is NOOP
    areal.save(force=True)
    areal.configure(Config(str(tmp_path), enabled=False, session_tracer=None), rank=0)
    assert not rs.enabled()
    assert areal.trace_scope("x", category=object()) is NOOP  # type: ignore[arg-type]  # not looked at
    assert areal.register_session(1) is None
    areal.instant("x")
    areal.trace_session_event("mark_finalized", task_id=1)
    areal.save(force=True)
    areal.reset()
    assert not list(tmp_path.iterdir())


def test_a_full_buffer_counts_what_it_drops(tmp_path: Path) -> None:
    config = {**vars(Config(str(tmp_path), session_tracer=None)), "max_buffer_mb": 0.01}
    tracer = areal.PerfTracer(config, rank=0)
    gathering, tracer.gather = tracer.gather, lambda **_: None  # type: ignore[method-assign]
    for number in range(100):
        tracer.instant(f"n{number}")
    tracer.gather = gathering  # type: ignore[method-assign]
    tracer.close()
    written = [event for event in perf(tmp_path) if event["ph"] == "i"]
    assert tracer.dropped > 0
    assert len(written) + tracer.dropped == 100


def test_a_folder_that_cannot_be_written_keeps_its_lines_until_it_can(tmp_path: Path) -> None:
    blocker = tmp_path / "root"
    blocker.write_text("a file where a folder should be")
    tracer = areal.PerfTracer(Config(str(blocker), session_tracer=None), rank=0)
    tracer.instant("kept")
    tracer.save(force=True)
    assert not tracer.file.is_written()
    blocker.unlink()
    tracer.save(force=True)
    assert perf(blocker)[-1]["name"] == "kept"
    tracer.close()


def test_a_profile_lies_on_tracks_of_its_own(tmp_path: Path) -> None:
    tracer = areal.configure(Config(str(tmp_path)), rank=2)
    events = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        {"ph": "X", "name": "kernel", "pid": 0, "tid": 7, "ts": 500.5, "dur": 2.0},
        {"ph": "X", "name": "op", "pid": 11, "tid": 12, "ts": 510.5, "dur": 2.0},
        {"ph": "X", "name": "book-keeping", "pid": "Spans", "tid": 0, "ts": 1.0e9},
    ]
    tracer.merge_profiler_trace({"traceEvents": events[:3]}, tracer._life.origin_ns + 3_000_000)
    tracer.merge_profiler_trace({"traceEvents": []}, 0)
    areal.save(force=True)
    found = spans(tmp_path)
    assert found["kernel"]["tid"] == -1
    assert found["kernel"]["ts"] == 3000.0
    assert found["op"]["ts"] == 3010.0
    names = {e["tid"]: e["args"]["name"] for e in perf(tmp_path) if e["name"] == "thread_name"}
    assert names == {-1: "[Profiler Stream 7]", -2: "[Profiler Thread 12]"}


def test_categories_take_aliases_in_any_case_and_keep_what_they_do_not_know(
    tmp_path: Path,
) -> None:
    areal.configure(Config(str(tmp_path)), rank=0)
    given: list[Any] = [None, "", "COMM", "Synchronization", areal.Category.IO, "mine", 5, []]
    for category in given:
        areal.instant("x", category=category)
    areal.save(force=True)
    written = [event["cat"] for event in perf(tmp_path) if event["ph"] == "i"]
    assert written == ["misc", "misc", "comm", "sync", "io", "mine", "misc", "misc"]
