"""The OpenTelemetry design: spans, attributes, carriers, endpoints, and the file of OTLP lines."""

import asyncio
import copy
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations import xtuner
from rollscope.integrations.xtuner.otlpfile import OtlpFile
from rollscope.model.kinds import Kind, Outcome, Status


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_nested_spans_keep_their_parent_and_their_path(site: Any) -> None:
    site.otel()
    with (
        xtuner.trace_span("outer", {"n": 2**70, "mixed": [1, "a"], "who": object()}),
        xtuner.trace_span("inner"),
    ):
        xtuner.set_trace_attributes({"late": True})
        xtuner.trace_event("noted", {"x": 1.5})

    inner, outer = site.spans()
    assert inner["parentSpanId"] == outer["spanId"]
    assert inner["traceId"] == outer["traceId"]
    assert "parentSpanId" not in outer
    assert attributes(outer)["n"] == str(2**70)
    assert attributes(outer)["who"] == "<object>"
    assert attributes(inner)["late"] is True
    assert inner["events"][0]["name"] == "noted"
    path = attributes(inner)["xtuner.span_name_path"]["values"]
    assert [each["stringValue"] for each in path] == ["outer", "inner"]
    run = site.run()
    assert {span.name for span in run.of_kind(Kind.SPAN)} == {"outer", "inner"}


def test_an_exception_is_told_by_the_span_and_passes_on(site: Any) -> None:
    site.otel()
    with pytest.raises(KeyError), xtuner.trace_span("work"):
        raise KeyError("gone")

    (span,) = site.spans()
    assert span["status"]["code"] == 2
    assert attributes(span)["error.type"] == "KeyError"
    (recorded,) = site.run().of_kind(Kind.SPAN)
    assert recorded.status is Status.ERROR


async def test_an_endpoint_makes_a_session_with_its_verdict(site: Any, new_state: Any) -> None:
    site.otel()

    class Judger:
        @xtuner.trace_rollout_endpoint("judger.run")
        async def run(self, rollout_state: Any) -> Any:
            rollout_state.reward = {"score": 1.0, "pass": True}
            return rollout_state

    @xtuner.trace_rollout_endpoint("single_turn_agent_loop.run")
    async def loop(rollout_state: Any) -> Any:
        await Judger().run(rollout_state)
        rollout_state.status, rollout_state.response_ids = "filtered", [1, 2, 3]
        return rollout_state

    extra = {"producer_future_step": "5"}
    state = new_state(uid=1012, group_id=3, prompt_ids=[1, 2], extra_fields=extra)
    await loop(state)

    assert extra == {"producer_future_step": "5"}
    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert (session.step, session.group, session.task_key) == (5, "3", "gsm8k/3")
    assert (session.outcome, session.reason) == (Outcome.REJECTED, "filtered")
    assert session.attrs["reward"] == 1.0
    judged, root = site.spans()
    assert judged["parentSpanId"] == root["spanId"]
    assert "parentSpanId" not in root
    told = attributes(root)
    assert told["xtuner.rollout_id"] == "1012"
    assert told["xtuner.status"] == "filtered"
    assert (told["prompt.tokens"], told["completion.tokens"]) == ("2", "3")
    assert told["xtuner.stage"] == "single_turn_agent_loop.run"


async def test_a_remote_call_goes_on_under_its_caller(site: Any, new_state: Any) -> None:
    site.otel()
    seen: list[dict[str, Any]] = []

    @xtuner.trace_rollout_endpoint("rollout.worker.generate")
    async def generate(rollout_state: Any) -> Any:
        return rollout_state

    class Remote:
        @staticmethod
        def remote(state: Any) -> Any:
            sent = copy.deepcopy(state)  # as Ray would
            seen.append(sent.extra_fields)
            carrier = dict(sent.extra_fields["_xtuner_trace_carrier"])
            assert "xtuner.span_name_path" in carrier["baggage"]
            return generate(sent)

    @xtuner.trace_rollout_endpoint("rollout.controller.generate")
    async def controller(rollout_state: Any) -> Any:
        return await xtuner.trace_rollout_remote(Remote, rollout_state)

    state = new_state()
    await controller(state)

    assert state.extra_fields == {}
    assert "_xtuner_trace_carrier" not in seen[0]
    worker, outer = site.spans()
    assert worker["parentSpanId"] == outer["spanId"]
    path = attributes(worker)["xtuner.span_name_path"]["values"]
    assert len(path) == 2
    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert [phase.name for phase in run.of_kind(Kind.PHASE)] == ["generate"]
    assert {span.session_id for span in run.of_kind(Kind.SPAN)} == {session.span_id}


async def test_an_endpoint_over_a_list_traces_every_member(site: Any, new_state: Any) -> None:
    site.otel()

    @xtuner.trace_rollout_endpoint("group.run", target_arg="states")
    async def group(states: list[Any]) -> list[Any]:
        return states

    await group([new_state(uid=1, group_id=4), new_state(uid=2, group_id=4)])

    run = site.run()
    assert len(run.of_kind(Kind.SESSION)) == 2
    assert len(run.of_kind(Kind.TASK)) == 1
    assert sorted(attributes(span)["xtuner.rollout_id"] for span in site.spans()) == ["1", "2"]


def test_a_carrier_is_extended_and_read_back(site: Any) -> None:
    site.otel()
    with xtuner.trace_span("caller"):
        carrier = xtuner.inject_trace_context({"baggage": "theirs=1"})
    assert "theirs=1" in carrier["baggage"]
    context = xtuner.extract_trace_context(carrier)
    assert context.span_name_path == ("caller",)
    with xtuner.trace_span("callee", parent_carrier=carrier):
        pass
    with context, xtuner.trace_span("other"):
        pass

    caller, callee, other = site.spans()
    assert callee["parentSpanId"] == other["parentSpanId"] == caller["spanId"]


async def test_spans_that_overlap_are_both_kept(site: Any, new_state: Any) -> None:
    site.otel()
    state = new_state()
    both = asyncio.Barrier(2)

    async def tool() -> None:
        with xtuner.trace_span("call", {"stage": "toolcall"}):
            await both.wait()

    @xtuner.trace_rollout_endpoint("single_turn_agent_loop.run")
    async def loop(rollout_state: Any) -> None:
        await asyncio.gather(tool(), tool())

    await loop(state)

    first, second = site.run().of_kind(Kind.PHASE)
    assert first.name == second.name == "toolcall"
    assert first.end_ns is not None
    assert second.start_ns < first.end_ns


def test_generators_are_timed_to_their_end(site: Any) -> None:
    site.otel()

    @xtuner.trace_function("items")
    def items() -> Any:
        yield 1
        time.sleep(0.02)

    assert list(items()) == [1]
    (span,) = site.run().of_kind(Kind.SPAN)
    assert span.duration_s is not None
    assert span.duration_s >= 0.02


def test_the_program_can_use_its_own_tracer_beside(site: Any, new_state: Any) -> None:
    site.otel()
    with rs.task("mine"), rs.session(sample=4), xtuner.trace_span(new_state(), "work"):
        pass

    run = site.run()
    (session,) = run.of_kind(Kind.SESSION)
    assert session.sample == 4
    assert run.of_kind(Kind.SPAN)[0].session_id == session.span_id


@pytest.mark.parametrize(("name", "error"), [(3, TypeError), (" ", ValueError)])
def test_names_are_refused_when_strict_only(site: Any, name: Any, error: type[Exception]) -> None:
    site.otel(strict=True)
    with pytest.raises(error):
        xtuner.trace_span("x", {name: 1})
    site.otel()
    with xtuner.trace_span("x", {name: 1}):
        pass


async def test_off_means_straight_through(site: Any, new_state: Any) -> None:
    @xtuner.trace_function
    async def plain(value: int) -> int:
        return value + 1

    @xtuner.trace_rollout_endpoint("x")
    async def endpoint(rollout_state: Any) -> Any:
        return rollout_state

    state, carrier = new_state(), {"a": "b"}
    assert await plain(1) == 2
    assert await endpoint(state) is state
    with xtuner.trace_span(object(), 5):
        pass
    async with xtuner.trace_span(state, "x"):
        await xtuner.trace_event(state, "y")
    xtuner.set_trace_attributes({"k": 1})
    assert xtuner.inject_trace_context(carrier) is carrier
    assert carrier == {"a": "b"}
    assert xtuner.get_trace_env_vars() == {}
    assert xtuner.merge_trace_runtime_env({"pip": []}) == {"pip": []}
    assert not site.folder.exists()


def test_what_a_consumer_does_between_two_items_is_not_the_generators(site: Any) -> None:
    site.otel()

    @xtuner.trace_function("items")
    def items() -> Any:
        with xtuner.trace_span("inside"):
            yield 1
        yield 2

    with xtuner.trace_span("consumer"):
        for _ in items():
            with xtuner.trace_span("between"):
                pass

    spans = {span["name"]: span for span in site.spans()}
    consumer = spans["consumer"]["spanId"]
    assert spans["items"]["parentSpanId"] == spans["between"]["parentSpanId"] == consumer
    assert spans["inside"]["parentSpanId"] == spans["items"]["spanId"]
    path = attributes(spans["between"])["xtuner.span_name_path"]["values"]
    assert [each["stringValue"] for each in path] == ["consumer", "between"]


async def test_asynchronous_generators_take_what_is_sent_and_thrown(site: Any) -> None:
    site.otel()

    @xtuner.trace_function("echo")
    async def echo() -> Any:
        heard = None
        while True:
            try:
                heard = yield heard
            except KeyError as error:
                heard = repr(error)

    generator = echo()
    assert await generator.asend(None) is None
    assert await generator.asend(5) == 5
    assert await generator.athrow(KeyError("x")) == "KeyError('x')"
    await generator.aclose()
    assert [span["name"] for span in site.spans()] == ["echo"]


def test_a_line_that_a_full_disk_cut_off_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OtlpFile(tmp_path / "traces.jsonl", "s", "r")
    span: tuple[Any, ...] = (bytes(15) + b"1", 1, 0, "work", 1, 2, {}, None, None)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
    with pytest.raises(OSError, match="only a part"):
        file.write([span])
    monkeypatch.undo()
    file.write([span])
    file.close()
    torn, whole = (tmp_path / "traces.jsonl").read_text().splitlines()
    assert len(torn) == 20
    (found,) = json.loads(whole)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (found["name"], found["spanId"]) == ("work", "0000000000000001")
