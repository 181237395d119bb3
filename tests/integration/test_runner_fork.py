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


_ORPHANED = """
    import asyncio, os, signal
    from rollscope.runner import Runner

    async def give():
        return 1

    def own(hold):
        async def main():
            async with Runner(journal="in-loop"):
                with Runner(journal="journal") as runner:
                    runner.submit(give).result(10)
                    if os.fork() == 0:
                        os.close(hold[1])
                        os.read(hold[0], 1)
                        os._exit(0)
                    os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())

    hold = os.pipe()
    owner = os.fork()
    if owner == 0:
        own(hold)
    os.waitpid(owner, 0)
    for name in ("journal", "in-loop"):
        with Runner(journal=name):
            pass
    os.close(hold[1])
"""


def test_a_forked_child_does_not_keep_the_journal_of_a_killed_parent(lab: Lab) -> None:
    program = lab.start(_ORPHANED)
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err


_ON_ITS_LOOP = """
    import asyncio, os
    from rollscope.errors import RunnerClosed
    from rollscope.runner import Runner

    async def main():
        async with Runner() as runner:
            pid = os.fork()
            if pid == 0:
                try:
                    runner.submit(asyncio.sleep, 0)
                except RunnerClosed:
                    os._exit(0)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert (await runner.submit(asyncio.sleep, 0, "mine")).value == "mine"

    asyncio.run(main())
"""


def test_the_copy_of_a_runner_on_a_loop_of_the_program_is_closed_too(lab: Lab) -> None:
    program = lab.start(_ON_ITS_LOOP)
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err
