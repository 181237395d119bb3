"""SIGTERM: nothing is lost, and the program ends, or lives on, as it would without tracing."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    import subprocess


def _ready(program: subprocess.Popen[str], word: str = "ready") -> None:
    assert program.stdout is not None
    assert program.stdout.readline() == f"{word}\n"


def _terminate(program: subprocess.Popen[str]) -> tuple[int, str]:
    """Send SIGTERM; give the exit status and what the program wrote to its error stream."""
    program.send_signal(signal.SIGTERM)
    _, err = program.communicate(timeout=PATIENCE_S)
    return program.returncode, err


def test_the_default_action_ends_the_program_after_everything_is_written(lab: Lab) -> None:
    program = lab.start("""
        import time
        import rollscope as rs

        rs.init(drain_s=60)  # so that only the handler can have written
        with rs.span("open"):
            for number in range(1000):
                with rs.span(f"closed{number}"):
                    pass
            print("ready")
            time.sleep(60)
    """)
    _ready(program)

    assert _terminate(program) == (-signal.SIGTERM, "")
    statuses = lab.statuses()
    assert statuses.pop("open") == "lost"
    assert statuses == {f"closed{number}": "ok" for number in range(1000)}
    (end,) = [record for record in lab.cat() if record["record"] == "end"]
    assert end["why"] == "sigterm"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_handler_of_the_program_keeps_working(lab: Lab, when: str) -> None:
    program = lab.start(
        """
        import signal, sys, time
        import rollscope as rs

        def leave(number, frame):
            with rs.span("in the handler"):
                print("goodbye", flush=True)
            sys.exit(7)

        if sys.argv[1] == "before":
            signal.signal(signal.SIGTERM, leave)
        rs.init(drain_s=60)
        if sys.argv[1] == "after":
            signal.signal(signal.SIGTERM, leave)
        with rs.span("interrupted"):
            print("ready")
            time.sleep(60)
        """,
        when,
    )
    _ready(program)
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert (program.returncode, out, err) == (7, "goodbye\n", "")
    assert lab.statuses() == {"in the handler": "ok", "interrupted": "error"}


def test_programs_that_shrug_sigterm_off_live_on_and_go_on_recording(lab: Lab) -> None:
    programs = [
        lab.start(f"""
            import signal, time
            import rollscope as rs

            rs.init()
            signal.signal(signal.SIGTERM, {action})
            with rs.span("first {action}"):
                print("ready")
                # Longer than the writer waits before it stands in for the main thread.
                time.sleep(1)
            with rs.span("second {action}"):
                pass
        """)
        for action in ("lambda *_: None", "signal.SIG_IGN")
    ]
    for program in programs:
        _ready(program)
        program.send_signal(signal.SIGTERM)
    for program in programs:
        _, err = program.communicate(timeout=PATIENCE_S)
        assert (program.returncode, err) == (0, "")

    assert list(lab.statuses().values()) == ["ok"] * 4


def test_an_asyncio_program_loses_nothing(lab: Lab) -> None:
    program = lab.start("""
        import asyncio
        import rollscope as rs

        async def roll_out(sample):
            async with rs.session(sample=sample, version=1) as session:
                with rs.phase(f"generate{sample}"):
                    await asyncio.sleep(0)
                with rs.phase(f"reward{sample}"):
                    await asyncio.sleep(60 * (sample % 2))

        async def main():
            tasks = [asyncio.create_task(roll_out(sample)) for sample in range(100)]
            await asyncio.wait(tasks[::2])
            print("ready")
            await asyncio.gather(*tasks)

        rs.init(drain_s=60)
        asyncio.run(main())
    """)
    _ready(program)

    assert _terminate(program) == (-signal.SIGTERM, "")
    phases = {span.name: span.status for span in lab.spans() if span.kind == "phase"}
    assert phases == {
        **{f"generate{sample}": "ok" for sample in range(100)},
        **{f"reward{sample}": "lost" if sample % 2 else "ok" for sample in range(100)},
    }


def test_an_asyncio_program_keeps_its_own_way_of_stopping(lab: Lab) -> None:
    program = lab.start("""
        import asyncio, signal
        import rollscope as rs

        async def main():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            with rs.span("served"):
                print("ready")
                await stop.wait()
            print("stopped by its own handler")

        rs.init(drain_s=60)
        asyncio.run(main())
    """)
    _ready(program)
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert (program.returncode, out, err) == (0, "stopped by its own handler\n", "")
    assert lab.statuses() == {"served": "ok"}


@pytest.mark.parametrize("where", ["first process", "forked child"])
def test_a_main_thread_that_hangs_in_native_code_can_be_terminated(lab: Lab, where: str) -> None:
    program = lab.start(
        """
        import os, sys
        import rollscope as rs
        from tests.integration.misbehaviour import hang_in_native_code

        spare = os.open(os.devnull, os.O_RDONLY)
        rs.init(drain_s=60)
        os.close(spare)  # a forked child's descriptors then get other numbers than its parent's
        if sys.argv[1] == "forked child" and os.fork():
            os._exit(os.waitstatus_to_exitcode(os.wait()[1]) + 100)
        with rs.span("before"):
            pass
        with rs.span("hangs"):
            hang_in_native_code(1)
        """,
        where,
        process_group=0,
    )
    _ready(program, "hangs")  # for good
    if where == "forked child":
        (child,) = _children(program.pid)
        signal_to, expected = child, 100 - signal.SIGTERM
    else:
        signal_to, expected = program.pid, -signal.SIGTERM
    _kill(signal_to)

    try:
        assert program.wait(PATIENCE_S) == expected
    finally:
        _kill(-program.pid, signal.SIGKILL)
    assert lab.statuses() == {"before": "ok", "hangs": "lost"}


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _kill(pid: int, number: signal.Signals = signal.SIGTERM) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def test_a_second_sigterm_while_a_slow_sink_is_written_to_loses_nothing(lab: Lab) -> None:
    # Launchers do that: one signal to the process group, one to the process.
    program = lab.start("""
        import time
        import rollscope as rs
        from tests.integration.misbehaviour import SlowSink

        rs.init(drain_s=60, sink=SlowSink())
        with rs.span("closed"):
            pass
        print("ready")
        time.sleep(60)
    """)
    _ready(program)
    program.send_signal(signal.SIGTERM)
    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the handler writes")

    assert _terminate(program) == (-signal.SIGTERM, "")
    assert lab.statuses() == {"closed": "ok"}


def test_sigterm_during_shutdown_loses_nothing(lab: Lab) -> None:
    program = lab.start("""
        import time
        import rollscope as rs
        from tests.integration.misbehaviour import SlowSink

        rs.init(drain_s=60, sink=SlowSink())
        with rs.span("closed"):
            pass
        print("ready")
        rs.shutdown()
        time.sleep(60)
    """)
    _ready(program)
    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the shutdown writes")

    assert _terminate(program) == (-signal.SIGTERM, "")
    assert lab.statuses() == {"closed": "ok"}


def test_two_tracers_are_both_written_out_to_slow_sinks(lab: Lab) -> None:
    program = lab.start("""
        import time
        import rollscope as rs
        from tests.integration.misbehaviour import SlowSink

        tracers = [rs.Tracer(drain_s=60, sink=SlowSink()) for _ in range(2)]
        for number, tracer in enumerate(tracers):
            with tracer.span(f"tracer {number}"):
                pass
        print("ready")
        time.sleep(60)
    """)
    _ready(program)

    assert _terminate(program) == (-signal.SIGTERM, "")
    assert lab.statuses() == {"tracer 0": "ok", "tracer 1": "ok"}


def test_a_whole_process_group_is_terminated_without_loss(lab: Lab) -> None:
    program = lab.start(
        """
        import os, sys, time
        import rollscope as rs

        rs.init(drain_s=60)
        read, write = os.pipe()
        for number in range(3):
            if os.fork() == 0:
                with rs.span(f"child {number}"):
                    pass
                os.write(write, b".")
                time.sleep(60)
        for _ in range(3):
            os.read(read, 1)
        with rs.span("parent"):
            pass
        print("ready")
        time.sleep(60)
        """,
        process_group=0,
    )
    _ready(program)
    _kill(-program.pid)

    assert program.wait(PATIENCE_S) == -signal.SIGTERM
    expected = {"parent": "ok", **{f"child {number}": "ok" for number in range(3)}}
    eventually(lambda: len(lab.read().spans) == 4, "all processes of the group have written")
    assert lab.statuses() == expected


def test_a_program_whose_sink_hangs_dies_of_sigterm_within_the_limit(lab: Lab) -> None:
    program = lab.start("""
        import time
        import rollscope as rs
        from tests.integration.misbehaviour import StuckSink

        rs.init(sink=StuckSink())
        with rs.span("closed"):
            pass
        print("ready")
        time.sleep(60)
    """)
    _ready(program)
    started = time.monotonic()
    status, err = _terminate(program)

    assert status == -signal.SIGTERM
    assert time.monotonic() - started < 5  # the limit of a program that exits
    assert err.count("\n") == 1
    assert "could not write the last" in err


def test_sigterm_is_left_to_the_system_where_it_is_turned_off_or_would_not_kill(lab: Lab) -> None:
    lab.finish("""
        import os, signal
        import rollscope as rs

        rs.init(sigterm=False)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        rs.shutdown()
        # The kernel spares process 1 of a container every signal that it has no handler for.
        os.getpid = lambda: 1
        rs.init()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    """)


def test_shutdown_gives_sigterm_and_the_wake_up_descriptor_back(lab: Lab) -> None:
    lab.finish("""
        import signal
        import rollscope as rs

        for _ in range(2):
            rs.init()
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            rs.shutdown()
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            assert signal.set_wakeup_fd(-1) == -1
    """)


@pytest.mark.parametrize("thread", ["main thread", "other thread"])
def test_a_wake_up_descriptor_put_back_after_shutdown_harms_no_file_of_the_program(
    lab: Lab, thread: str
) -> None:
    # Event loops take the descriptor over while they run, and some restore what they found.
    lab.finish(
        """
        import os, signal, socket, sys, threading
        import rollscope as rs

        rs.init()
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        found = signal.set_wakeup_fd(theirs.fileno())
        if sys.argv[1] == "main thread":
            rs.shutdown()
        else:
            stopper = threading.Thread(target=rs.shutdown)
            stopper.start()
            stopper.join()
        files = [open(f"file{number}", "wb", buffering=0) for number in range(8)]
        signal.set_wakeup_fd(found)

        signal.signal(signal.SIGUSR1, lambda *_: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert [os.path.getsize(file.name) for file in files] == [0] * 8
        """,
        thread,
    )


def test_children_terminated_at_any_moment_die_soon_and_take_nobody_along(lab: Lab) -> None:
    # Until a forked child has found itself, its signals go the ways of its parent; and while it
    # exits, the handler runs inside of the very waits that it needs itself.
    program = lab.start("""
        import os, random, signal, sys, time
        import rollscope as rs

        rs.init(drain_s=60)
        rng = random.Random(3)
        slowest = 0
        for number in range(150):
            started = time.monotonic()
            child = os.fork()
            if child == 0:
                sys.exit()
            time.sleep(rng.choice((0, rng.uniform(0, 0.015))))
            os.kill(child, signal.SIGTERM)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGTERM)
            slowest = max(slowest, time.monotonic() - started)
        time.sleep(1)  # longer than the writer waits before it stands in for the main thread
        with rs.span("lives on"):
            print(slowest)
    """)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert (program.returncode, err) == (0, "")
    assert float(out) < 2  # which is what waiting in vain takes
    assert lab.statuses() == {"lives on": "ok"}
