"""Every way out of a program: all is written, and nothing about the program changes."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.integration.support import PATIENCE_S, Lab


class _Way(NamedTuple):
    """A way to leave, with what it makes of the span it leaves."""

    code: str
    status: str
    reason: str | None = None


_WAYS = {
    "end": _Way("pass", "ok"),
    "exit 0": _Way("sys.exit(0)", "ok"),
    "exit 3": _Way("sys.exit(3)", "error", "SystemExit: 3"),
    "exit with a message": _Way("sys.exit('message')", "error", "SystemExit: message"),
    "exception": _Way("raise ValueError('unhandled')", "error", "ValueError: unhandled"),
    "interrupt": _Way("signal.raise_signal(signal.SIGINT)", "cancelled", "KeyboardInterrupt"),
}

_PROGRAM = """
    import atexit, signal, sys
    import rollscope as rs

    if sys.argv[1] == "traced":
        rs.init(drain_s=60)  # so that only the way out can have written
    atexit.register(lambda: print("at exit"))
    print("to stdout")
    print("to stderr", file=sys.stderr)
    with rs.span("before"):
        pass
    with rs.span("left"):
        {code}
    print("still here")
"""


@pytest.mark.parametrize("way", _WAYS)
def test_a_traced_program_ends_as_an_untraced_one_and_loses_nothing(lab: Lab, way: str) -> None:
    source = _PROGRAM.format(code=_WAYS[way].code)
    seen = []
    for mode in ("untraced", "traced"):
        program = lab.start(source, mode)
        out, err = program.communicate(timeout=PATIENCE_S)
        # The traceback names the file, which differs, and nothing of ours.
        seen.append((program.returncode, out, re.sub(r"program\d", "program", err)))

    assert seen[0] == seen[1]
    assert lab.statuses() == {"before": "ok", "left": _WAYS[way].status}
    assert lab.named("left").reason == _WAYS[way].reason
    (end,) = [record for record in lab.cat() if record["record"] == "end"]
    assert end["why"] == "exit"


def test_sys_exit_in_a_thread_ends_the_thread_only(lab: Lab) -> None:
    lab.finish("""
        import sys, threading
        import rollscope as rs

        def work(code):
            with rs.span(f"exit {code}"):
                sys.exit(code)

        rs.init(drain_s=60)
        for code in (0, 5):
            thread = threading.Thread(target=work, args=(code,))
            thread.start()
            thread.join()
        with rs.span("afterwards"):
            pass
    """)

    assert lab.statuses() == {"exit 0": "ok", "exit 5": "error", "afterwards": "ok"}


def test_threads_that_outlive_the_main_thread_are_recorded_to_their_end(lab: Lab) -> None:
    lab.finish("""
        import threading
        import rollscope as rs

        def work():
            threading.main_thread().join()
            with rs.span("after main"):
                pass

        rs.init(drain_s=60)
        threading.Thread(target=work).start()
    """)

    assert lab.statuses() == {"after main": "ok"}


def test_a_daemon_thread_that_hangs_neither_delays_the_exit_nor_is_forgotten(lab: Lab) -> None:
    lab.finish("""
        import threading
        import rollscope as rs

        entered = threading.Event()

        def work():
            with rs.span("hangs"):
                entered.set()
                threading.Event().wait()

        rs.init(drain_s=60)
        threading.Thread(target=work, daemon=True).start()
        entered.wait()
    """)

    assert lab.statuses() == {"hangs": "lost"}
    assert lab.named("hangs").reason == "its process ended"


def test_a_tracer_that_nobody_holds_any_more_is_written_at_exit(lab: Lab) -> None:
    lab.finish("""
        import gc
        import rollscope as rs

        def work():
            tracer = rs.Tracer(drain_s=60)
            with tracer.span("only"):
                pass

        work()
        gc.collect()
    """)

    assert lab.statuses() == {"only": "ok"}


def test_several_tracers_and_runs_in_one_process_stay_apart(lab: Lab) -> None:
    lab.finish("""
        import rollscope as rs

        rs.init()
        alone = rs.Tracer(run="other")
        with rs.span("default"), alone.span("alone"):
            pass
        rs.init(run="third")
        with rs.span("next run"):
            pass
    """)

    assert lab.statuses() == {"default": "ok"}
    names = []
    for run in ("other", "third"):
        lab.run = lab.run.with_name(run)
        names.append(lab.statuses())
    assert names == [{"alone": "ok"}, {"next run": "ok"}]


def test_everything_recorded_before_a_flush_is_in_the_file_when_it_returns(lab: Lab) -> None:
    program = lab.start("""
        import os, rollscope as rs

        rs.init(drain_s=60)
        for number in range(5000):
            with rs.span(f"span{number}"):
                pass
        assert rs.flush()
        os._exit(0)
    """)

    assert program.wait(PATIENCE_S) == 0
    assert len(lab.statuses()) == 5000


def test_a_program_that_turns_warnings_into_errors_sees_none_of_ours(lab: Lab) -> None:
    strict = {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}
    source = """
        import asyncio, gc, os, sys, threading
        import rollscope as rs

        async def main():
            async with rs.task("item"), rs.session() as session:
                with rs.phase("generate"):
                    await asyncio.to_thread(rs.carry(print), "out")
                session.finish("accepted")

        rs.init()
        asyncio.run(main())
        rs.init()
        if os.fork() == 0:
            sys.exit()
        assert os.wait()[1] == 0
        rs.stacks()
        gc.collect()
    """
    lab.finish(source, env=strict)

    assert lab.statuses() == {"task": "ok", "session": "ok", "generate": "ok"}


def test_a_program_with_thousands_of_open_files_is_traced_at_no_cost(lab: Lab) -> None:
    # `select` refuses descriptors from 1024 on.
    program = lab.start("""
        import os, resource, time
        import rollscope as rs

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        rs.init()
        with rs.span("traced"):
            before = time.process_time()
            time.sleep(1)
            print(time.process_time() - before)
        assert rs.flush()
    """)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert (program.returncode, err) == (0, "")
    assert float(out) < 0.3  # a writer that cannot sleep takes all of the second
    assert lab.statuses() == {"traced": "ok"}


def test_a_program_that_closes_all_descriptors_is_neither_slowed_down_nor_written_into(
    lab: Lab,
) -> None:
    # As daemons do. The files it opens next get the numbers that were Rollscope's.
    program = lab.start("""
        import os, time
        import rollscope as rs

        rs.init(heartbeat_s=0.1)
        with rs.span("first"):
            pass
        assert rs.flush()
        os.closerange(3, 64)
        files = [open(f"file{number}", "wb", buffering=0) for number in range(8)]
        before = time.process_time()
        for number in range(10):
            with rs.span(f"later{number}"):
                time.sleep(0.1)
        print(time.process_time() - before)
        assert [os.path.getsize(file.name) for file in files] == [0] * 8
    """)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert (program.returncode, err) == (0, "")
    assert float(out) < 0.3
    assert lab.statuses() == {"first": "ok", **{f"later{number}": "ok" for number in range(10)}}
