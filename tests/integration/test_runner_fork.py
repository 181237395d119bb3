"""The copy of a runner that a forked child gets is closed, and can begin a life of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.support import PATIENCE_S

if TYPE_CHECKING:
    from tests.integration.support import Lab

_PROGRAM = """
    import asyncio, os, signal, sys, threading
    from rollscope.errors import RunnerClosed
    from rollscope.runner import Runner

    started, release = threading.Event(), threading.Event()

    async def hold():
        started.set()
        while not release.is_set():
            await asyncio.sleep(0.001)
        return "held"

    async def give(value):
        return value

    def is_refused(call):
        try:
            call()
        except (RunnerClosed, LookupError):
            return True
        return False

    def child(runner):
        signal.alarm(10)  # whatever hangs here is ended
        assert runner.health().state == "closed"
        assert is_refused(lambda: runner.submit(give, 1))
        assert is_refused(lambda: runner.wait(1))
        assert is_refused(lambda: runner.wait_for(0))
        runner.cancel(0)
        runner.drain(1.0)
        runner.close()
        with runner:
            assert runner.ledger().submitted == 0
            assert runner.submit(give, "mine").result(5).value == "mine"
            assert runner.take_ready() == []

    runner = Runner(concurrency=1).start()
    held = runner.submit(hold)
    stale = runner.submit(give, "queued")
    started.wait()
    pid = os.fork()
    if pid == 0:
        try:
            child(runner)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    release.set()
    assert [one.value for one in runner.wait(2, 10)] == ["held", "queued"]
    runner.close()
"""


def test_a_forked_child_has_a_closed_copy_and_the_parent_goes_on(lab: Lab) -> None:
    program = lab.start(_PROGRAM)
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err
