from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from rollscope.model.kinds import Status
from rollscope.rollout.tool_calls import ToolBox, ToolCall, parse_tool_calls
from rollscope.testing import capture


def written(*calls: Any) -> str:
    return "let me see" + "".join(
        f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls
    )


def answer(tools: dict[str, Any], *calls: ToolCall, **limits: Any) -> list[str]:
    box = ToolBox(tools, **{"timeout_s": 30.0, "max_result_chars": 1000, **limits})
    messages = asyncio.run(box.answer(calls))
    assert [(m["role"], m["name"]) for m in messages] == [("tool", call.name) for call in calls]
    return [message["content"] for message in messages]


def error_of(content: str) -> str:
    (error,) = json.loads(content).values()
    assert isinstance(error, str)
    return error


def test_calls_are_read_in_their_order() -> None:
    first = {"name": "add", "arguments": {"a": 1}}
    assert parse_tool_calls(written(first, {"name": "now"})) == [
        ToolCall("add", {"a": 1}),
        ToolCall("now", {}),
    ]
    assert parse_tool_calls("no call") == []


def test_a_call_may_end_with_the_text() -> None:
    assert parse_tool_calls('<tool_call>{"name": "now"}') == [ToolCall("now", {})]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<tool_call>{oops</tool_call>", "not valid JSON"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "not valid JSON"),
        (written([1]), 'needs a "name"'),
        (written({"name": 3}), 'needs a "name"'),
        (written({"name": "add", "arguments": [1]}), "must be an object"),
    ],
    ids=["cut", "nested", "list", "name", "arguments"],
)
def test_a_call_that_cannot_be_read_says_why(text: str, error: str) -> None:
    (call,) = parse_tool_calls(text)
    assert call.error is not None
    assert error in call.error


def test_plain_and_async_tools_take_arguments_by_name() -> None:
    async def double(n: int) -> int:
        return 2 * n

    def where(n: int) -> str:
        return f"{n} {threading.current_thread() is threading.main_thread()}"

    tools = {"double": double, "where": where, "lazy": lambda n: double(n)}
    calls = [ToolCall(name, {"n": 4}) for name in tools]
    assert answer(tools, *calls) == ["8", "4 False", "8"]


def test_results_that_are_no_text_are_written_as_json() -> None:
    assert answer({"t": lambda: {"ö": [1, None, {2}]}}, ToolCall("t", {})) == [
        '{"ö": [1, null, "{2}"]}'
    ]


def test_calls_run_side_by_side() -> None:
    async def main() -> list[str]:
        barrier = asyncio.Barrier(3)

        async def meet() -> str:
            await barrier.wait()
            return "met"

        box = ToolBox({"meet": meet}, timeout_s=30, max_result_chars=100)
        return [m["content"] for m in await box.answer([ToolCall("meet", {})] * 3)]

    assert asyncio.run(main()) == ["met"] * 3


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "RuntimeError: "),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (Mute(), "Mute"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises_the_model_is_told(error: BaseException, told: str) -> None:
    def fail() -> None:
        raise error

    (content,) = answer({"fail": fail}, ToolCall("fail", {}))
    assert error_of(content).startswith(told)


def test_wrong_names_wrong_arguments_and_unread_calls_are_told() -> None:
    calls = [ToolCall("nope", {}), ToolCall("t", {"x": 1}), ToolCall("", {}, "garbled")]
    unknown, wrong, unread = map(error_of, answer({"t": lambda: 1}, *calls))
    assert unknown == "LookupError: there is no tool 'nope'; there are ['t']"
    assert wrong.startswith("TypeError")
    assert unread == "ValueError: garbled"


def test_a_tool_that_hangs_is_given_up_and_others_are_not() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    tools = {"hang": hang, "t": lambda: 1}
    hung, fine = answer(tools, ToolCall("hang", {}), ToolCall("t", {}), timeout_s=1.0)
    assert error_of(hung) == "TimeoutError: no result within 1.0 s"
    assert fine == "1"


def test_a_plain_tool_that_hangs_is_left_behind_in_its_thread() -> None:
    release = threading.Event()

    async def main() -> str:
        box = ToolBox({"hang": release.wait}, timeout_s=0.05, max_result_chars=100)
        try:
            (message,) = await box.answer([ToolCall("hang", {})])
        finally:
            release.set()
        return error_of(message["content"])

    assert asyncio.run(main()) == "TimeoutError: no result within 0.05 s"


def test_a_long_result_is_cut_and_says_so() -> None:
    (content,) = answer({"t": lambda: "x" * 50}, ToolCall("t", {}), max_result_chars=10)
    assert content == "xxxxxxxxxx… (50 characters in all)"


def test_a_tool_can_be_cancelled() -> None:
    async def main() -> list[str]:
        started, ended = asyncio.Event(), []

        async def hang() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cleaned up")

        box = ToolBox({"hang": hang}, timeout_s=None, max_result_chars=100)
        task = asyncio.create_task(box.answer([ToolCall("hang", {})]))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended

    assert asyncio.run(main()) == ["cleaned up"]


def test_each_call_is_a_phase_that_keeps_its_error() -> None:
    def fail() -> None:
        raise KeyError("k")

    with capture() as captured:
        answer({"fail": fail, "t": lambda: 1}, ToolCall("fail", {}), ToolCall("t", {}))
        failed, fine = sorted(captured.spans(), key=lambda span: str(span.attrs["tool"]))
    assert (failed.name, failed.attrs["tool"], failed.status) == ("toolcall", "fail", Status.ERROR)
    assert failed.reason == "KeyError: 'k'"
    assert (fine.name, fine.attrs["tool"], fine.status) == ("toolcall", "t", Status.OK)
