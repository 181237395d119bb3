"""Episodes as sessions, by way of an environment with the surface of verifiers 0.4."""

from __future__ import annotations

import asyncio
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import MissingExtra
from rollscope.integrations import verifiers
from rollscope.testing import capture
from tests.unit.integrations.verifiers.standin import Env, Trace, run, task

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.model.records import SpanRecord


async def _one_agent(env: Env, mint: Callable[[str], Trace]) -> None:
    trace = mint("solver")
    trace.begin("boot")
    trace.end("boot", then="setup")
    trace.end("setup", then="agent")
    for request in (1, 2):
        trace.ask(request)
        await asyncio.sleep(0)
        trace.answer(request, prompt_tokens=10, completion_tokens=3)
    trace.end("agent")
    trace.timing.finalize.start = trace.timing.agent.end
    trace.end("finalize", then="scoring")
    trace.score(0.5)
    trace.end("scoring")


def _tree(spans: list[SpanRecord]) -> list[tuple[str, str, str]]:
    names = {span.span_id: span.name for span in spans}
    return [(str(s.kind), s.name, names.get(s.parent_id or "", "")) for s in spans]


def test_an_episode_becomes_a_session_with_stages_and_calls() -> None:
    env = verifiers.watch(Env(_one_agent))
    with capture() as captured:
        (episode,) = run(env.run_episode(task("sum/1"), None))
        spans = captured.spans()
    assert episode.ok
    assert _tree(spans) == [
        ("task", "task", ""),
        ("session", "session", "task"),
        ("span", "solver", "session"),
        ("phase", "boot", "solver"),
        ("phase", "setup", "solver"),
        ("phase", "agent", "solver"),
        ("phase", "generate", "agent"),
        ("phase", "generate", "agent"),
        ("phase", "finalize", "solver"),
        ("phase", "reward", "solver"),
    ]
    session = spans[1]
    assert (session.task_key, session.sample, session.status) == ("sum/1", 0, "ok")
    told = {key: session.attrs[key] for key in ("session_id", "family", "reward", "turns")}
    assert told == {"session_id": "e0", "family": "sums", "reward": 0.5, "turns": 2}
    assert (spans[6].attrs["tokens_in"], spans[6].attrs["tokens_out"]) == (10, 3)


def test_a_stuck_call_is_seen_while_it_hangs() -> None:
    seen: list[tuple[str, str, str]] = []

    async def hangs(env: Env, mint: Callable[[str], Trace]) -> None:
        trace = mint("solver")
        trace.begin("agent")
        trace.ask(1)
        open_spans = [span for span in captured.spans() if span.end_ns is None]
        seen.extend(_tree(open_spans))
        trace.answer(1)

    with capture() as captured:
        run(verifiers.watch(Env(hangs)).run_episode(task("k"), None))
        left = [span for span in captured.spans() if span.end_ns is None]
    assert [name for _, name, _ in seen] == ["task", "session", "solver", "agent", "generate"]
    assert left == []


def test_a_stage_that_is_told_of_when_it_is_over_has_its_true_length() -> None:
    async def late(env: Env, mint: Callable[[str], Trace]) -> None:
        trace = mint("solver")
        trace.timing.finalize.start = time.time() - 0.05
        trace.end("finalize")
        trace.timing.boot.start, trace.timing.boot.end = 1.0, 2.0
        trace.notify()

    with capture() as captured:
        run(verifiers.watch(Env(late)).run_episode(task("k"), None))
        length_s = captured.named("finalize").duration_s
        agent = captured.named("solver")
    assert length_s is not None
    assert length_s >= 0.05
    assert agent.attrs["not_followed"] == ["boot"]


def test_requests_at_once_are_told_apart() -> None:
    async def parallel(env: Env, mint: Callable[[str], Trace]) -> None:
        trace = mint("solver")
        trace.begin("agent")
        trace.ask(1)
        trace.ask(2)
        trace.answer(2, prompt_tokens=2, completion_tokens=2)
        trace.answer(1, prompt_tokens=1, completion_tokens=1)
        trace.end("agent")

    with capture() as captured:
        run(verifiers.watch(Env(parallel)).run_episode(task("k"), None))
        calls = [span for span in captured.spans() if span.name == "generate"]
    assert [span.attrs["tokens_in"] for span in calls] == [1, 2]
    first, second = calls
    assert first.end_ns is not None
    assert second.end_ns is not None
    assert first.start_ns <= second.start_ns <= second.end_ns <= first.end_ns


def test_samples_of_one_task_share_it_and_are_numbered() -> None:
    env = verifiers.watch(Env(_one_agent))
    with capture() as captured:
        run(*(env.run_episode(task("sum/2"), None) for _ in range(3)))
        spans = captured.spans()
    sessions = [span for span in spans if span.kind == "session"]
    assert sorted(span.sample or 0 for span in sessions) == [0, 1, 2]
    (shared,) = [span for span in spans if span.kind == "task"]
    assert {span.parent_id for span in sessions} == {shared.span_id}
    assert shared.end_ns is not None


def test_an_error_that_verifiers_caught_is_marked_above_the_call_it_came_from() -> None:
    error = SimpleNamespace(type="ProviderError", message="upstream 503")

    async def fails(env: Env, mint: Callable[[str], Trace]) -> None:
        trace = mint("solver")
        trace.begin("agent")
        trace.ask(1)
        trace.answer(1, error=error)
        trace.ok = False
        trace.errors.append(error)
        trace.end("agent")

    with capture() as captured:
        run(verifiers.watch(Env(fails)).run_episode(task("k"), None))
        spans = captured.spans()
    failed = [
        (span.name, span.attrs.get("error.copied")) for span in spans if span.status == "error"
    ]
    assert failed == [("session", True), ("solver", True), ("generate", None)]
    session = next(span for span in spans if span.kind == "session")
    assert (session.outcome, session.reason) == ("failed", "ProviderError")


def test_a_timeout_is_an_outcome() -> None:
    async def late(env: Env, mint: Callable[[str], Trace]) -> None:
        mint("solver").is_timeout = True

    with capture() as captured:
        run(verifiers.watch(Env(late)).run_episode(task("k"), None))
        session = captured.named("session")
    assert (session.status, session.outcome) == ("ok", "timeout")


def test_a_cancelled_episode_leaves_nothing_open() -> None:
    async def waits(env: Env, mint: Callable[[str], Trace]) -> None:
        mint("solver").begin("boot")
        await asyncio.Event().wait()

    async def cancel() -> None:
        going = asyncio.ensure_future(env.run_episode(task("k"), None))
        await asyncio.sleep(0)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going

    env = verifiers.watch(Env(waits))
    with capture() as captured:
        asyncio.run(cancel())
        spans = captured.spans()
    assert all(span.end_ns is not None for span in spans)
    assert next(span for span in spans if span.kind == "session").status == "cancelled"


def test_an_exception_of_the_environment_is_passed_on() -> None:
    async def raises(env: Env, mint: Callable[[str], Trace]) -> None:
        raise LookupError("no such task")

    with capture() as captured:
        with pytest.raises(LookupError, match="no such task"):
            run(verifiers.watch(Env(raises)).run_episode(task("k"), None))
        assert captured.named("session").status == "error"


def test_a_trace_that_was_given_up_for_another_try_is_closed_then() -> None:
    async def retries(env: Env, mint: Callable[[str], Trace]) -> None:
        first = mint("solver")
        env.episode.on_discard(first)
        mint("solver")

    with capture() as captured:
        run(verifiers.watch(Env(retries)).run_episode(task("k"), None))
        agents = [span for span in captured.spans() if span.name == "solver"]
    assert [span.attrs.get("why") for span in agents] == ["retried", None]
    assert agents[0].end_ns is not None
    assert agents[0].end_ns <= agents[1].start_ns


def test_whoever_watches_a_trace_already_is_still_told() -> None:
    changes: list[str] = []

    def theirs(trace: Any) -> None:
        trace.watch(lambda changed: changes.append(changed.id))

    with capture():
        run(verifiers.watch(Env(_one_agent)).run_episode(task("k"), None, on_trace=theirs))
    assert len(changes) == 10


def test_a_trace_of_another_shape_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSCOPE_RAISE", "0")

    async def odd(env: Env, mint: Callable[[str], Trace]) -> None:
        trace = mint("solver")
        del trace.timing
        trace.notify()

    with capture() as captured:
        (episode,) = run(verifiers.watch(Env(odd)).run_episode(task("k"), None))
        spans = captured.spans()
    assert [(span.name, span.status) for span in spans] == [
        ("task", "ok"),
        ("session", "ok"),
        ("solver", "ok"),
    ]
    assert episode.ok


def test_without_a_recorder_the_call_goes_through_unchanged() -> None:
    seen: list[Any] = []

    async def script(env: Env, mint: Callable[[str], Trace]) -> None:
        seen.append(mint("solver")._on_change)

    run(verifiers.watch(Env(script)).run_episode(task("k"), None))
    assert seen == [None]


def test_watching_twice_records_once() -> None:
    env = verifiers.watch(verifiers.watch(Env(_one_agent)))
    with capture() as captured:
        run(env.run_episode(task("k"), None))
        assert captured.named("session").sample == 0


def test_an_older_verifiers_is_refused() -> None:
    class Older:
        async def run_episode(self, task: Any, ctx: Any) -> None:
            """Know nothing of watchers."""

    with pytest.raises(RuntimeError, match=r"0\.4 or newer"):
        verifiers.watch(Older())


def test_install_covers_every_environment_and_can_be_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fresh(Env):
        run_episode = Env.run_episode

    package = ModuleType("verifiers.v1")
    monkeypatch.setattr(package, "Env", Fresh, raising=False)
    monkeypatch.setitem(sys.modules, "verifiers", ModuleType("verifiers"))
    monkeypatch.setitem(sys.modules, "verifiers.v1", package)
    original = Fresh.run_episode
    verifiers.install()
    verifiers.install()
    with capture() as captured:
        run(Fresh(_one_agent).run_episode(task("k"), None))
        assert captured.named("session").status == "ok"
    verifiers.uninstall()
    assert Fresh.run_episode is original


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verifiers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'verifiers>=0\.4'"):
        verifiers.install()
