"""The producer trace: its calls, its records, and the run beside them."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rollscope.integrations import xtuner
from rollscope.model.kinds import Kind, Outcome, Status

KEYS = [
    "trace_id",
    "stage",
    "timestamp_s",
    "status",
    "task_name",
    "uid",
    "session_uid",
    "train_step",
    "model_step",
    "producer_future_step",
    "produce_batch_id",
    "worker_rank",
    "elapsed_s",
    "error_msg",
]


async def test_a_decorated_function_writes_a_start_and_an_end(site: Any, new_state: Any) -> None:
    site.configure()

    @xtuner.trace_function("xtuner.rollout_worker.generate", worker_rank=2)
    async def generate(rollout_state: Any) -> Any:
        rollout_state.status = "completed"
        return rollout_state

    extra = {"_trace_train_step": 3, "_trace_model_step": "2", "_trace_producer_future_step": 3}
    state = new_state(uid=100, extra_fields=extra)
    await generate(state)

    start, end = site.events()
    assert list(start) == KEYS
    assert start["stage"] == "xtuner.rollout_worker.generate.start"
    assert (start["status"], end["status"]) == ("init", "completed")
    assert start["elapsed_s"] is None
    assert end["elapsed_s"] > 0
    assert start["trace_id"] == "gsm8k:100"
    assert start["produce_batch_id"] == "train_step=3/model_step=2/producer_future_step=3"
    assert (start["worker_rank"], start["session_uid"]) == (2, 7)
    assert extra == {
        "_trace_train_step": 3,
        "_trace_model_step": "2",
        "_trace_producer_future_step": 3,
    }


async def test_nested_spans_of_a_rollout_make_one_session(site: Any, new_state: Any) -> None:
    site.configure()
    state = new_state(extra_fields={"_trace_train_step": 4, "_trace_model_step": 3})

    async with xtuner.trace_span(state, "xtuner.agent_loop.generate_sample"):
        async with (
            xtuner.trace_span(state, "xtuner.rollout_controller.generate"),
            xtuner.trace_span(state, "xtuner.rollout_worker.generate"),
        ):
            pass
        async with xtuner.trace_span(state, "xtuner.judger.judge"):
            state.reward = {"score": 0.5}
        state.status = "archived"

    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert (session.step, session.version_start) == (4, 3)
    assert session.outcome is Outcome.ACCEPTED
    assert session.attrs["reward"] == 0.5
    assert session.attrs["family"] == "gsm8k"
    assert [phase.name for phase in run.of_kind(Kind.PHASE)] == ["generate", "reward"]
    inner = {span.name for span in run.of_kind(Kind.SPAN)}
    assert inner == {"xtuner.agent_loop.generate_sample", "xtuner.rollout_worker.generate"}
    assert {span.session_id for span in run.of_kind(Kind.PHASE)} == {session.span_id}


async def test_a_list_is_traced_for_each_member(site: Any, new_state: Any) -> None:
    site.configure()
    states = [new_state(uid=uid) for uid in (1, 2, 3)]

    async def sample(state: Any) -> None:
        async with xtuner.trace_span(state, "xtuner.agent_loop.generate_sample"):
            await asyncio.sleep(0)
            state.status = "completed"

    @xtuner.trace_function("xtuner.producer.generate_group")
    async def generate_group(group: list[Any]) -> list[Any]:
        await asyncio.gather(*(sample(state) for state in group))
        return group

    await generate_group(states)

    run = site.run()
    sessions = run.of_kind(Kind.SESSION)
    assert sorted(session.sample for session in sessions if session.sample is not None) == [0, 1, 2]
    assert len(run.of_kind(Kind.TASK)) == 1
    spans = {span.span_id: span for span in run.of_kind(Kind.SPAN)}
    inner = [span for span in spans.values() if span.name.endswith("generate_sample")]
    assert len(inner) == 3
    for span in inner:  # each below the group's span in its own session
        assert span.parent_id is not None
        outer = spans[span.parent_id]
        assert outer.name == "xtuner.producer.generate_group"
        assert outer.session_id == span.session_id
    events = site.events()
    assert len(events) == 12
    assert sum(event["stage"].endswith("generate_group.start") for event in events) == 3


async def test_a_failing_sample_leaves_its_siblings_alone(site: Any, new_state: Any) -> None:
    site.configure()
    good, bad = new_state(uid=1), new_state(uid=2)

    async def sample(state: Any) -> None:
        async with xtuner.trace_span(state, "xtuner.agent_loop.generate_sample"):
            if state is bad:
                raise ValueError("x" * 900)
            state.status = "completed"

    await asyncio.gather(sample(good), sample(bad), return_exceptions=True)

    run = site.run()
    by_uid = {session.attrs["session_id"]: session for session in run.of_kind(Kind.SESSION)}
    assert by_uid[1].status is Status.OK
    assert by_uid[1].outcome is None
    assert by_uid[2].outcome is Outcome.FAILED
    (error,) = [event for event in site.events() if event["stage"].endswith(".error")]
    assert error["error_msg"].startswith("ValueError: xxx")
    assert len(error["error_msg"]) == 500


async def test_a_cancelled_call_writes_an_error_line(site: Any, new_state: Any) -> None:
    site.configure()
    inside = asyncio.Event()

    @xtuner.trace_function("work")
    async def work(rollout_state: Any) -> None:
        inside.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(work(new_state()))
    await inside.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert [event["stage"] for event in site.events()] == ["work.start", "work.error"]


async def test_a_span_after_the_end_joins_the_ended_session(site: Any, new_state: Any) -> None:
    site.configure()
    state = new_state()
    async with xtuner.trace_span([state], "xtuner.producer.sample_group"):
        pass
    async with xtuner.trace_span([state], "xtuner.producer.generate_group"):
        state.status = "completed"
    async with xtuner.trace_span([state], "xtuner.producer.put_generated_group"):
        state.status = "expired"

    (session,) = site.run().of_kind(Kind.SESSION)
    assert session.outcome is Outcome.DROPPED
    assert session.reason == "expired"


async def test_a_second_try_is_a_session_of_its_own(site: Any, new_state: Any) -> None:
    site.configure()
    state = new_state()
    for last in ("aborted", "completed"):
        state.status = "init"
        async with xtuner.trace_span(state, "xtuner.agent_loop.generate_sample"):
            state.status = last

    first, second = site.run().of_kind(Kind.SESSION)
    assert first.outcome is Outcome.CANCELLED
    assert second.attrs["attempt"] == 1


async def test_states_that_come_back_are_written_without_a_start(site: Any, new_state: Any) -> None:
    site.configure()

    @xtuner.trace_function("xtuner.producer.sample_group")
    async def sample_group() -> list[Any]:
        return [new_state(uid=1), new_state(uid=2)]

    await sample_group()

    assert [event["stage"] for event in site.events()] == ["xtuner.producer.sample_group.end"] * 2


def test_a_failing_getter_does_not_stop_the_call(site: Any, new_state: Any) -> None:
    site.configure()

    def fail(*args: Any) -> dict[str, Any]:
        raise RuntimeError("no")

    @xtuner.trace_function("work", trace_kwargs_getter=fail)
    def work(rollout_state: Any) -> int:
        return 5

    assert work(new_state()) == 5
    assert len(site.events()) == 2


async def test_fields_of_a_getter_count_and_others_become_attributes(
    site: Any, new_state: Any
) -> None:
    site.configure()

    @xtuner.trace_function("work", trace_kwargs_getter=lambda *_: {"train_step": 9, "self": "me"})
    async def work(rollout_state: Any) -> None: ...

    await work(new_state())

    run = site.run()
    assert run.of_kind(Kind.SESSION)[0].step == 9
    assert run.of_kind(Kind.SPAN)[0].attrs["self"] == "me"
    assert {event["train_step"] for event in site.events()} == {9}


async def test_an_event_is_recorded_whether_it_is_awaited_or_not(site: Any, new_state: Any) -> None:
    site.configure()
    state = new_state()
    async with xtuner.trace_span(state, "outer"):
        await xtuner.trace_event(state, "picked", worker_rank=1)
        xtuner.trace_event(state, "dropped")

    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert [event.name for event in run.events] == ["picked", "dropped"]
    assert {event.session_id for event in run.events} == {session.span_id}
    assert [event["stage"] for event in site.events()][1:3] == ["picked", "dropped"]


def test_a_value_that_json_cannot_hold_costs_only_itself(site: Any, new_state: Any) -> None:
    site.configure()
    with xtuner.trace_span(new_state(uid=object(), session_uid=float("nan")), "work"):
        pass

    start, _ = site.events()
    assert start["uid"] == "<object>"
    assert start["session_uid"] is None


def test_without_a_folder_events_stay_in_memory(
    site: Any, new_state: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runtime = site.configure(output_dir=None, max_events_per_trace=3)
    for _ in range(4):
        with xtuner.trace_span(new_state(), "work"):
            pass

    assert len(runtime.events) == 3
    assert not list(tmp_path.rglob("producer_trace_*"))


def test_a_recorder_in_use_gets_events_without_any_configuration(site: Any, new_state: Any) -> None:
    seen: list[xtuner.TraceEvent] = []

    class Listening:
        def record(self, event: xtuner.TraceEvent) -> None:
            seen.append(event)

    with (
        xtuner.use_trace_recorder(Listening()),
        xtuner.trace_span(new_state(), "work"),
    ):
        pass
    with xtuner.trace_span(new_state(), "later"):
        pass

    assert [event.stage for event in seen] == ["work.start", "work.end"]


def test_shards_are_begun_anew_when_one_is_full(tmp_path: Path) -> None:
    from rollscope.integrations.xtuner.producerfile import ProducerFile

    file = ProducerFile(tmp_path, shard_bytes=1000)
    for number in range(8):
        file.write([xtuner.TraceEvent("t", f"stage{number}", 1.0)])
    file.close()

    shards = sorted(tmp_path.iterdir())
    assert len(shards) > 1
    lines = [json.loads(line) for each in shards for line in each.read_text().splitlines()]
    assert [line["stage"] for line in lines] == [f"stage{number}" for number in range(8)]


def test_spans_one_after_the_other_belong_to_one_session_while_the_rollout_goes_on(
    site: Any, new_state: Any
) -> None:
    site.configure()
    state = new_state()
    with xtuner.trace_span(state, "xtuner.rollout_controller.generate"):
        pass
    with xtuner.trace_span(state, "xtuner.judger.judge"):
        state.status = "archived"

    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert session.outcome is Outcome.ACCEPTED
    assert "attempt" not in session.attrs
    assert {phase.session_id for phase in run.of_kind(Kind.PHASE)} == {session.span_id}
    assert [phase.name for phase in run.of_kind(Kind.PHASE)] == ["generate", "reward"]


def test_a_rollout_that_never_ends_is_over_with_its_last_span_when_tracing_is(
    site: Any, new_state: Any
) -> None:
    site.configure()
    with xtuner.trace_span(new_state(), "work"):
        pass
    with xtuner.trace_span("later"):
        pass

    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    later = next(span for span in run.of_kind(Kind.SPAN) if span.name == "later")
    assert session.status is Status.OK
    assert session.outcome is None
    assert session.end_ns is not None
    assert session.end_ns <= later.start_ns


def test_a_record_that_cannot_be_encoded_costs_only_itself(tmp_path: Path) -> None:
    from rollscope.integrations.xtuner.producerfile import ProducerFile
    from rollscope.integrations.xtuner.writing import ClassicWriter

    writer = ClassicWriter(ProducerFile(tmp_path))
    broken: Any = object()  # no event at all
    for record in (xtuner.TraceEvent("t", "a", 1.0), broken, xtuner.TraceEvent("t", "b", 2.0)):
        writer.add(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLSCOPE_RAISE")
        assert writer.shutdown()
    assert writer.dropped == 1
    (file,) = tmp_path.iterdir()
    stages = [json.loads(line)["stage"] for line in file.read_text().splitlines()]
    assert stages == ["a", "b"]


def test_a_disk_that_takes_half_a_piece_gets_the_whole_of_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollscope.integrations.xtuner.producerfile import ProducerFile

    file = ProducerFile(tmp_path)
    events = [xtuner.TraceEvent("t", name, 1.0) for name in "abc"]
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
    with pytest.raises(OSError, match="only a part"):
        file.write(events)
    monkeypatch.undo()
    file.write(events)
    file.close()
    (shard,) = tmp_path.iterdir()
    lines = [json.loads(line)["stage"] for line in shard.read_text().splitlines()]
    assert lines == ["a", "b", "c"]
