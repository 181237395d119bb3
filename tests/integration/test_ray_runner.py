"""The Ray backend on a real local cluster: actors that die, go silent, repeat themselves."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import ray

import rollscope
from rollscope.errors import MissingExtra, PlacementTimeout, SettingError
from rollscope.runner import Reason, Retry, Runner, Status, ctx
from rollscope.runner.ray import RayRunner
from rollscope.runner.ray.mailbox import Mailbox
from rollscope.runner.ray.wire import Done, decode_report
from tests.conformance import tasks
from tests.conformance.backends import PATIENCE_S, Signals, eventually
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = IGNORE_LEAKS_OF_RAY

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
HERE = "tests.integration.test_ray_runner"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_cluster():
        yield


@pytest.fixture(autouse=True)
def no_leaks(clean_environment: None) -> Iterator[None]:
    """Look for threads only: Ray keeps its connections as long as it runs."""
    yield
    rollscope.shutdown()
    ours = [one.name for one in threading.enumerate() if one.name.startswith("rollscope-")]
    assert set(ours) <= {"rollscope-shared"}


@pytest.fixture
def signals(tmp_path: Path) -> Signals:
    return Signals(tmp_path)


@pytest.fixture(scope="module")
def shared(cluster: None) -> Iterator[RayRunner]:
    """Give a runner for tests that leave it as it was."""
    with make_runner(
        name="shared", actors=1, per_actor=4, contextvars=[f"{HERE}:tenant"]
    ) as runner:
        yield runner


def make_runner(**settings: Any) -> RayRunner:
    """Make a runner whose actors fit beside those of others."""
    return RayRunner(**{"resources": {"CPU": 0}, "probe_s": None, **settings})


def pids_of(runner: RayRunner) -> set[int]:
    return {actor.pid for actor in runner.actors()}


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def touch(path: str) -> None:
    Path(path).touch()


async def log_run(folder: str, name: int, delay_s: float) -> int:
    """Leave a trace of each execution."""
    (Path(folder) / f"run.{name}.{ctx.attempt}.{os.getpid()}").touch()
    await asyncio.sleep(delay_s)
    return name


async def kill_own_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def stop_own_process(started: str) -> int:
    """Stand still with the whole process, the first time."""
    touch(f"{started}{ctx.attempt}")
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid()


async def count_up(started: str, release: str) -> int:
    """Go on from the last checkpoint, then leave another one."""
    reached: int = ctx.partial or 0
    ctx.checkpoint(reached + 1)
    touch(f"{started}{reached}")
    while not os.path.exists(release):  # noqa: ASYNC110, ASYNC240  (told by another process)
        await asyncio.sleep(0.01)
    return reached


async def tell_tenant() -> str:
    return tenant.get()


async def give_lock() -> Any:
    return threading.Lock()


async def give_bytes(size: int) -> bytes:
    return b"x" * size


async def block_loop(started: str, release: str) -> str:
    touch(started)
    while not os.path.exists(release):  # noqa: ASYNC240  (blocking is what it is for)
        time.sleep(0.01)  # noqa: ASYNC251
    return "done"


async def work_in_phase() -> int:
    with rollscope.phase("generate"):
        await asyncio.sleep(0.01)
    return os.getpid()


# --- tasks go out and come back ------------------------------------------------------------------


def test_outcomes_come_back_from_other_processes(shared: RayRunner) -> None:
    for number in range(50):
        shared.submit(tasks.give_back, number, name=str(number))
    outcomes = shared.wait(50, timeout_s=PATIENCE_S)
    assert sorted(one.value[0][0] for one in outcomes) == list(range(50))
    assert all(one.status is Status.OK and one.attempts == 1 for one in outcomes)
    for one in outcomes:
        times = [one.submitted_ns, one.admitted_ns or 0, one.started_ns or 0, one.finished_ns]
        assert times == sorted(times)
    ledger = shared.ledger()
    assert ledger.adds_up()
    assert ledger.unfinished == 0


def test_a_task_knows_its_context_there(shared: RayRunner) -> None:
    shared.set_version(7)
    told = shared.options(tags={"set": "aime"}, timeout_s=60).submit(tasks.tell_context)
    outcome = told.result(PATIENCE_S)
    assert outcome.value == {
        "id": told.id, "attempt": 1, "version": 7, "tags": {"set": "aime"}, "has_deadline": True,
    }  # fmt: skip
    assert outcome.versions == (7,)


def test_only_registered_context_variables_cross(shared: RayRunner) -> None:
    tenant.set("somebody")
    assert shared.submit(tell_tenant).result(PATIENCE_S).value == "somebody"
    with (
        pytest.raises(SettingError, match="no context variable"),
        make_runner(actors=1, contextvars=["tests.integration.test_ray_runner:missing"]),
    ):
        pass


def test_failures_carry_their_text_and_kind(shared: RayRunner) -> None:
    rules = Retry(rules={ValueError: "policy"})
    outcome = shared.options(retry=rules).submit(tasks.fail, "broken").result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.EXCEPTION)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.text) == ("policy", "broken")
    assert "tasks.py" in outcome.error.traceback_text


def test_the_head_tries_again_what_failed_there(shared: RayRunner) -> None:
    retry = Retry(rules={ConnectionError: "infra"}, per_task=3, base_s=0.0)
    outcome = shared.options(retry=retry).submit(tasks.fail_until, 3).result(PATIENCE_S)
    assert (outcome.status, outcome.value, outcome.attempts) == (Status.OK, 3, 3)
    assert [one.reason for one in outcome.history][:2] == [Reason.EXCEPTION] * 2
    assert {one.actor for one in outcome.history} == {shared.actors()[0].name}


def test_a_wrong_call_hurts_only_itself(shared: RayRunner) -> None:
    bad = shared.submit(tasks.give, 1, 2, 3)
    good = shared.submit(tasks.give, 4)
    assert bad.result(PATIENCE_S).reason is Reason.BAD_CALL
    assert good.result(PATIENCE_S).value == 4


def test_what_cannot_be_serialised_is_named(shared: RayRunner) -> None:
    lock = threading.Lock()
    there = shared.submit(tasks.give, lock).result(PATIENCE_S)
    assert (there.status, there.reason) == (Status.FAILED, Reason.BAD_CALL)
    assert there.error is not None
    assert "give cannot be sent to an actor" in there.error.text
    back = shared.submit(give_lock).result(PATIENCE_S)
    assert (back.status, back.reason) == (Status.FAILED, Reason.EXCEPTION)
    assert back.error is not None
    assert "returned a lock, which cannot be sent" in back.error.text


def test_closures_and_lambdas_travel(shared: RayRunner) -> None:
    factor = 3

    async def times(number: int) -> int:
        return number * factor

    assert shared.submit(times, 5).result(PATIENCE_S).value == 15


def test_large_values_stay_in_the_object_store(shared: RayRunner) -> None:
    first = shared.submit(give_bytes, 200_000)
    outcome = shared.wait_for(first.id, PATIENCE_S, resolve=False)
    assert isinstance(outcome.value, ray.ObjectRef)
    assert ray.get(outcome.value) == b"x" * 200_000
    shared.submit(give_bytes, 300_000)
    (resolved,) = shared.wait(1, timeout_s=PATIENCE_S)
    assert resolved.value == b"x" * 300_000
    small = shared.submit(give_bytes, 1_000)
    assert shared.wait_for(small.id, PATIENCE_S, resolve=False).value == b"x" * 1_000


def test_the_large_values_of_a_group_are_fetched_too(shared: RayRunner) -> None:
    shared.group(3).spawn_all(give_bytes, 150_000)
    (outcome,) = shared.wait(1, timeout_s=PATIENCE_S)
    assert outcome.value == [b"x" * 150_000] * 3
    assert shared.ledger().adds_up()


# --- steering ------------------------------------------------------------------------------------


def test_large_values_are_kept_themselves_for_a_later_process(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with make_runner(actors=1, journal=path) as runner:
        unfetched = runner.submit(give_bytes, 200_000)
        runner.submit(give_bytes, 300_000)
        assert eventually(lambda: runner.ledger().outbox == 2, "two outcomes")
        state = runner.state_dict()
        assert runner.sync_journal(PATIENCE_S)
        (handed_out,) = [one for one in runner.take_ready(resolve=False) if one.id == unfetched.id]
        assert isinstance(handed_out.value, ray.ObjectRef)
        later = runner.state_dict()
    for given in (state, later):
        second = Runner(resumable=True)
        second.load_state_dict(given)
        assert sorted(len(one.value) for one in second.take_ready()) == [200_000, 300_000]
    with Runner(journal=path) as third:
        assert sorted(len(one.value) for one in third.wait(2, 0)) == [200_000, 300_000]


def test_who_is_cancelled_while_a_large_value_comes_leaves_it_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        coming = asyncio.Event()

        async def never_come(_: Any) -> None:
            coming.set()
            await asyncio.Event().wait()

        async with make_runner(actors=1) as runner:
            handle = runner.submit(give_bytes, 200_000)
            for wait in (lambda: runner.await_outcomes(1), lambda: runner.await_for(handle.id)):
                coming.clear()
                with monkeypatch.context() as patch:
                    patch.setattr("rollscope.runner.ray.runner.afetch_values", never_come)
                    waiting = asyncio.ensure_future(wait())
                    await asyncio.wait_for(coming.wait(), PATIENCE_S)
                    waiting.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await waiting
                assert runner.ledger().outbox == 1
            (outcome,) = await runner.await_outcomes(1, PATIENCE_S)
            assert len(outcome.value) == 200_000

    asyncio.run(main())


def test_a_thread_that_is_interrupted_while_a_large_value_comes_leaves_it_to_others(
    shared: RayRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Any) -> list[Any]:
        raise KeyboardInterrupt

    handle = shared.submit(give_bytes, 200_000)
    with monkeypatch.context() as patch:
        patch.setattr("rollscope.runner.ray.runner.fetch_values", interrupt)
        with pytest.raises(KeyboardInterrupt):
            handle.result(PATIENCE_S)
    assert len(handle.result(PATIENCE_S).value) == 200_000


def test_cancel_reaches_running_and_waiting_tasks(shared: RayRunner, signals: Signals) -> None:
    running = shared.submit(tasks.tell_cancel, signals.path("started"), signals.path("told"))
    signals.wait("started")
    assert shared.cancel(running.id) == 1
    outcome = running.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.REQUESTED)
    assert Path(signals.path("told")).read_text() == "requested"
    at_once = shared.submit(tasks.hold, signals.path("never"), signals.path("release"))
    assert shared.cancel(at_once.id) == 1
    assert at_once.result(PATIENCE_S).status is Status.CANCELLED


def test_time_limits_hold_there(shared: RayRunner) -> None:
    late = shared.options(timeout_s=0.1).submit(tasks.give_after, 60).result(PATIENCE_S)
    assert (late.status, late.reason) == (Status.TIMEOUT, Reason.DEADLINE)
    stalled = shared.options(stall_s=0.2).submit(tasks.give_after, 60).result(PATIENCE_S)
    assert (stalled.status, stalled.reason) == (Status.TIMEOUT, Reason.NO_PROGRESS)
    steady = shared.options(stall_s=0.4).submit(tasks.progress_for, 10, 0.08)
    assert steady.result(PATIENCE_S).value == "got on"


def test_a_pause_is_quiet_only_when_nothing_runs(shared: RayRunner, signals: Signals) -> None:
    running = shared.submit(tasks.hold, signals.path("started"), signals.path("release"), "old")
    signals.wait("started")
    with shared.pause() as pause:
        waiting = [shared.submit(tasks.give, number) for number in range(20)]
        assert not pause.quiesced(timeout_s=0.2)
        signals.send("release")
        assert running.result(PATIENCE_S).value == "old"  # delivered while it is paused
        assert pause.quiesced(PATIENCE_S)
        assert shared.ledger().queued == 20
    assert [one.result(PATIENCE_S).value for one in waiting] == list(range(20))


def test_tasks_hold_at_pause_points(shared: RayRunner, signals: Signals) -> None:
    shared.set_version(20)
    paths = signals.path("started"), signals.path("release")
    holding = shared.submit(tasks.stop_at_pause_points, *paths, "held")
    signals.wait("started")
    with shared.pause(mode="hold") as pause:
        assert pause.quiesced(PATIENCE_S)
        shared.set_version(21)
        assert shared.ledger().running == 1
    signals.send("release")
    outcome = holding.result(PATIENCE_S)
    assert (outcome.value, outcome.attempts) == ("held", 1)
    assert outcome.versions == (20, 21)


def test_an_abort_starts_again_from_the_checkpoint(shared: RayRunner, signals: Signals) -> None:
    counting = shared.submit(count_up, signals.path("reached"), signals.path("release"))
    signals.wait("reached0")
    with shared.pause(mode="abort") as pause:
        assert pause.quiesced(PATIENCE_S)
    signals.wait("reached1")
    signals.send("release")
    outcome = counting.result(PATIENCE_S)
    assert (outcome.value, outcome.attempts) == (1, 2)


def test_control_answers_while_a_task_blocks_its_loop(signals: Signals) -> None:
    with make_runner(actors=1, heartbeat_s=0.05, silence_s=5.0) as runner:
        blocking = runner.submit(block_loop, signals.path("started"), signals.path("release"))
        signals.wait("started")
        before = runner._launcher.members[0].last
        eventually(lambda: runner._launcher.members[0].last is not before, "a heartbeat")
        signals.send("release")
        assert blocking.result(PATIENCE_S).value == "done"


def test_inspect_shows_where_a_task_hangs(signals: Signals) -> None:
    with make_runner(actors=1, heartbeat_s=0.05) as runner:
        holding = runner.submit(tasks.hold, signals.path("started"), signals.path("release"))
        eventually(lambda: any(one.frames for one in runner.inspect()), "frames")
        (report,) = runner.inspect()
        assert (report.id, report.state) == (holding.id, "running")
        assert any("tasks.py" in frame and "hold" in frame for frame in report.frames)
        (actor,) = runner.actors()
        assert (actor.running, actor.leased, actor.state) == (1, 1, "live")
        signals.send("release")
        holding.result(PATIENCE_S)


# --- faults --------------------------------------------------------------------------------------


def test_a_killed_actor_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with make_runner(actors=2, per_actor=8, breaker=None) as runner:
        for number in range(120):
            runner.submit(log_run, str(tmp_path), number, 0.05)
        victim = next(iter(pids_of(runner)))
        eventually(lambda: list(tmp_path.glob(f"run.*.{victim}")), "work on the victim")
        os.kill(victim, signal.SIGKILL)
        outcomes = runner.wait(120, timeout_s=60)
        assert sorted(one.value for one in outcomes) == list(range(120))
        again = [one for one in outcomes if one.attempts > 1]
        assert again
        assert all(one.attempts == 2 for one in again)
        assert {one.history[0].reason for one in again} == {Reason.LOST}
        assert runner.ledger().adds_up()
        assert runner.take_ready() == []
        eventually(lambda: len(runner.actors()) == 2, "a replacement")
        assert victim not in pids_of(runner)


def test_tasks_start_again_even_if_their_lost_actor_cannot_be_ended(
    signals: Signals, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("the cluster does not answer")

    with make_runner(actors=1) as runner:
        (pid,) = pids_of(runner)
        handle = runner.submit(log_run, signals.path(""), 3, 1.0)
        eventually(lambda: signals.count("run.3.1"), "the first attempt")
        with monkeypatch.context() as patch:
            patch.setattr(ray, "kill", refuse)
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: signals.count("run.3.2"), "the second attempt")
        assert handle.result(PATIENCE_S).value == 3
    assert "the cluster does not answer" in caplog.text


def test_a_silent_actor_is_replaced(signals: Signals) -> None:
    settings: dict[str, Any] = {"heartbeat_s": 0.1, "silence_s": 1.0}
    with make_runner(actors=1, **settings) as runner:
        (silent,) = pids_of(runner)
        handle = runner.submit(stop_own_process, signals.path("started"))
        outcome = handle.result(60)
        assert outcome.attempts == 2
        assert outcome.value != silent
        assert outcome.history[0].reason is Reason.LOST
        eventually(lambda: is_gone(silent), "the silent actor's end")


def test_a_task_goes_on_elsewhere_from_its_checkpoint(signals: Signals) -> None:
    with make_runner(actors=1) as runner:
        counting = runner.submit(count_up, signals.path("reached"), signals.path("release"))
        signals.wait("reached0")
        task = runner._kernel.live[counting.id]
        eventually(lambda: task.rare is not None and task.rare.partial == 1, "the checkpoint")
        os.kill(next(iter(pids_of(runner))), signal.SIGKILL)
        signals.wait("reached1")
        signals.send("release")
        outcome = counting.result(60)
        assert (outcome.value, outcome.attempts) == (1, 2)


def test_a_task_that_kills_its_actors_is_given_up() -> None:
    with make_runner(actors=1, retry=Retry(per_task=5)) as runner:
        outcome = runner.submit(kill_own_process).result(60)
        assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.LOST)
        assert outcome.attempts == 4
        assert "lost 4 times" in outcome.detail
        assert runner.submit(tasks.give, "alive").result(60).value == "alive"


def test_a_report_that_comes_twice_counts_once(shared: RayRunner) -> None:
    inbound = shared._launcher.inbound
    take, doubled = inbound.take, inbound.doubled

    def take_twice(member: Any, report: Any) -> None:
        take(member, report)
        take(member, report)

    inbound.take = take_twice  # type: ignore[method-assign]
    try:
        for number in range(20):
            shared.submit(tasks.give, number)
        outcomes = shared.wait(20, timeout_s=PATIENCE_S)
    finally:
        inbound.take = take  # type: ignore[method-assign]
    assert sorted(one.value for one in outcomes) == list(range(20))
    assert shared.stats().doubled_results >= doubled + 20
    assert shared.ledger().adds_up()


def test_a_completion_that_got_lost_is_recovered_by_its_lease() -> None:
    settings: dict[str, Any] = {"heartbeat_s": 0.05, "lease_s": 0.3}
    with make_runner(actors=1, **settings) as runner:
        inbound = runner._launcher.inbound
        take = inbound.take
        lost: list[Any] = []

        def lose_first_end(member: Any, report: Any) -> None:
            if report.done and not lost:
                lost.extend(report.done)
                report.done = []
            take(member, report)

        inbound.take = lose_first_end  # type: ignore[method-assign]
        outcome = runner.submit(tasks.give, 1).result(PATIENCE_S)
        assert lost
        assert (outcome.status, outcome.value, outcome.attempts) == (Status.OK, 1, 2)


def test_a_reply_that_got_lost_is_given_again() -> None:
    async def read() -> list[bytes]:
        mailbox = Mailbox()
        mailbox.done(Done(1, Status.OK, Reason.ACCEPTED, 0))
        first = await mailbox.read(0)
        again = await mailbox.read(0)
        mailbox.returned(2)
        given_up = asyncio.ensure_future(mailbox.read(1))
        await asyncio.sleep(0)
        second = await mailbox.read(1)
        return [first, again, second, await given_up]

    first, again, second, given_up = asyncio.run(read())
    assert first == again
    assert decode_report(first).done[0].lease == 1
    assert decode_report(second).returned == [2]
    assert given_up == b""


def test_actors_without_a_place_are_named() -> None:
    began = time.monotonic()
    with pytest.raises(PlacementTimeout, match=r"missing resources: GPU \(each needs 1"):
        make_runner(actors=1, resources={"CPU": 1, "GPU": 1}, placement_s=0.5).start()
    assert time.monotonic() - began < PATIENCE_S


# --- life ----------------------------------------------------------------------------------------


def test_close_leaves_no_actors_and_outcomes_readable(signals: Signals) -> None:
    runner = make_runner(actors=2).start()
    pids = pids_of(runner)
    done = runner.submit(tasks.give, "done")
    eventually(lambda: runner.ledger().outbox == 1, "the outcome")
    held = runner.submit(tasks.hold, signals.path("started"), signals.path("release"))
    signals.wait("started")
    report = runner.close()
    assert report.unfinished == [held.id]
    assert done.result(0).value == "done"
    assert held.result(0).reason is Reason.CLOSED
    assert runner.actors() == []
    eventually(lambda: all(is_gone(pid) for pid in pids), "the end of all actors")


def test_the_same_object_works_on_a_running_loop() -> None:
    async def use() -> list[Any]:
        runner = make_runner(actors=1)
        async with runner:
            for number in range(20):
                runner.submit(give_bytes, 10_000 * number)
            outcomes = await runner.await_outcomes(20, timeout_s=PATIENCE_S)
        return [len(one.value) for one in outcomes]

    assert sorted(asyncio.run(use())) == [10_000 * number for number in range(20)]


def test_sessions_and_phases_meet_in_one_run(tmp_path: Path) -> None:
    rollscope.init(dir=str(tmp_path), run="ray")
    with make_runner(actors=1) as runner:
        there = {runner.submit(work_in_phase).result(PATIENCE_S).value for _ in range(3)}
    rollscope.shutdown()
    assert there != {os.getpid()}
    with rollscope.open(str(tmp_path / "ray")) as run:
        sessions = run.sql("SELECT span_id AS id FROM spans WHERE kind = 'session'")
        phases = run.sql("SELECT parent_id AS id FROM spans WHERE name = 'generate'")
    assert len(phases) == 3
    assert set(phases["id"].to_pylist()) == set(sessions["id"].to_pylist())


def test_the_very_first_tasks_of_an_actor_are_recorded_and_those_of_a_later_run(
    tmp_path: Path,
) -> None:
    with make_runner(actors=2, per_actor=16) as runner:
        for name in ("first", "later"):
            rollscope.init(dir=str(tmp_path), run=name)
            for _ in range(40):
                runner.submit(work_in_phase)
            runner.wait(40, timeout_s=PATIENCE_S)
    rollscope.shutdown()
    for name in ("first", "later"):
        with rollscope.open(str(tmp_path / name)) as run:
            met = run.sql(
                "SELECT home.role FROM spans AS phase JOIN processes AS home USING (process) "
                "JOIN spans AS session ON session.span_id = phase.parent_id "
                "WHERE phase.name = 'generate' AND session.kind = 'session'"
            )
        assert met["role"].to_pylist() == ["rollout"] * 40


def test_ray_is_asked_for_by_name_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray.cloudpickle", None)
    with pytest.raises(MissingExtra, match=r"rollscope\[ray\]"):
        make_runner(actors=1).start()
