"""A program that is instrumented but not traced pays nothing and leaves nothing."""

from __future__ import annotations

import pytest

from tests.integration.support import Lab

_PROGRAM = """
    import asyncio, os, signal, sys, threading
    import rollscope as rs

    @rs.trace("traced", attrs=lambda number: {"number": number})
    def traced(number):
        return number

    async def main():
        async with rs.step(1), rs.task("item"), rs.session(sample=1) as session:
            with rs.phase("generate") as phase, rs.state("busy", lane="l"):
                phase.set(tokens=1)
            session.finish("accepted", reward=1.0)
        rs.annotate(session, late=1)
        rs.annotate(session.ref, late=1)

    files = sorted(os.listdir("/proc/self/fd"))
    if sys.argv[1] == "init":
        rs.init(sink="file")
    assert not rs.enabled()
    asyncio.run(main())
    with rs.span("span") as span:
        assert not span and span.ref is None
        rs.event("event")
        rs.payload("messages", ["x"])
        rs.count("c")
        rs.gauge("g", 1)
        rs.observe("o", 1)
        assert traced(3) == 3
        assert rs.inject() == {}
        assert "TRACEPARENT" not in rs.child_env()
        with rs.attach({"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}):
            assert not rs.current()
        assert rs.carry(traced) is traced
    assert rs.stacks() == []
    assert rs.flush() and rs.shutdown()
    assert threading.active_count() == 1
    assert sorted(os.listdir("/proc/self/fd")) == files
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1
    if os.fork() == 0:
        assert threading.active_count() == 1
        sys.exit()
    assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("switch", ["off", "0", "OFF", "false"])
def test_with_rollscope_off_nothing_is_written_or_started(lab: Lab, switch: str) -> None:
    lab.finish(_PROGRAM, "init", env={"ROLLSCOPE": switch})

    assert not lab.run.parent.exists()


def test_without_init_nothing_is_written_or_started(lab: Lab) -> None:
    lab.finish(_PROGRAM, "no init")

    assert not lab.run.parent.exists()


def test_a_sink_of_none_records_and_writes_nothing(lab: Lab) -> None:
    lab.finish("""
        import os, subprocess, sys
        import rollscope as rs

        rs.init(sink="none")
        assert rs.enabled()
        with rs.span("span"):
            child = "import rollscope as rs; rs.init(); rs.span('child').__enter__()"
            subprocess.run([sys.executable, "-c", child], env=rs.child_env(), check=True)
        assert rs.flush()
    """)

    assert not lab.run.parent.exists()
