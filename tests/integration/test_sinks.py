"""Sinks that fail, hang or come back: the program does not notice, and the run tells the truth."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.integration.support import PATIENCE_S, Lab, eventually

_PROGRAM = """
    import sys, time
    import rollscope as rs
    from tests.integration import misbehaviour

    sink = getattr(misbehaviour, sys.argv[1])() if len(sys.argv) > 1 else "file"
    rs.init(sink=sink, drain_s=0.05)
    print("started")
    for number in range(10):
        with rs.span(f"span{number}"):
            time.sleep(0.02)
    print("finished")
"""
_ALL = {f"span{number}": "ok" for number in range(10)}


def _run(lab: Lab, *args: object, **env: str) -> tuple[list[str], float]:
    """Run the program; give what it logged and how long it took to end after its last word."""
    program = lab.start(_PROGRAM, *args, env=env)
    assert program.stdout is not None
    assert program.stdout.readline() == "started\n"
    assert program.stdout.readline() == "finished\n"
    started = time.monotonic()
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    assert "Traceback" not in err
    return err.splitlines(), time.monotonic() - started


@pytest.mark.parametrize("sink", ["DeadSink", "ExitingSink"])
def test_a_sink_that_always_fails_costs_one_sentence_and_no_time(lab: Lab, sink: str) -> None:
    (cannot,), ending_s = _run(lab, sink)

    assert cannot.startswith("Rollscope cannot write the run 'run' (")
    assert ending_s < 4.5  # a sink that hangs is waited for 5 s


def test_a_directory_that_cannot_be_written_costs_one_sentence_and_no_time(lab: Lab) -> None:
    lab.run.parent.write_text("a file where the directory should be")

    (cannot,), ending_s = _run(lab)

    assert "NotADirectoryError" in cannot
    assert str(lab.run.parent) in cannot
    assert ending_s < 4.5  # a sink that hangs is waited for 5 s


def test_a_sink_that_fails_every_other_time_loses_nothing_not_even_at_the_end(lab: Lab) -> None:
    (sentence,), _ = _run(lab, "FlakySink")

    assert "ConnectionError: try again" in sentence
    assert lab.statuses() == _ALL


def test_a_slow_sink_loses_nothing_and_is_not_worth_a_word(lab: Lab) -> None:
    logged, _ = _run(lab, "SlowSink")

    assert logged == []
    assert lab.statuses() == _ALL


def test_a_sink_that_hangs_for_a_while_loses_nothing_and_is_not_worth_a_word(lab: Lab) -> None:
    lab.finish("""
        import time
        import rollscope as rs
        from tests.integration.misbehaviour import GateSink

        sink = GateSink()
        rs.init(sink=sink, drain_s=0.02)
        for number in range(10):
            with rs.span(f"span{number}"):
                time.sleep(0.02)
        assert not rs.flush(timeout_s=0.1)
        sink.gate.set()
        assert rs.flush()
    """)

    assert lab.statuses() == _ALL
    assert lab.read().drops == {}


def test_a_sink_that_hangs_for_good_delays_the_end_by_its_limit_only(lab: Lab) -> None:
    (sentence,), ending_s = _run(lab, "StuckSink")

    assert sentence.startswith("Rollscope could not write the last ")
    assert ending_s < 15  # the limit is 5 s


def test_records_wait_for_a_directory_that_becomes_writable(lab: Lab) -> None:
    lab.run.parent.write_text("a file where the directory should be")
    program = lab.start("""
        import sys
        import rollscope as rs

        rs.init(drain_s=0.05)
        with rs.span("before"):
            pass
        with rs.span("across"):
            sys.stdin.readline()
        with rs.span("after"):
            pass
    """)
    assert program.stderr is not None
    assert program.stdin is not None
    assert "cannot write" in program.stderr.readline()
    lab.run.parent.unlink()

    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the log is written")
    eventually(lambda: "before" in {s.name for s in lab.read().spans.values()}, "a span is read")
    program.stdin.write("go on\n")
    program.stdin.flush()
    assert program.wait(PATIENCE_S) == 0
    assert program.stderr.read() == ""
    assert lab.statuses() == {"before": "ok", "across": "ok", "after": "ok"}
    assert lab.read().drops == {}


_OVERFLOW = """
    import json, sys, time
    import rollscope as rs
    from tests.integration.misbehaviour import GateSink

    sink = GateSink()
    rs.init(sink=sink, buffer_mb=1, drain_s=0.02)
    made = {"task": 0, "session": 0, "phase": 0, "span": 0}
    with rs.span("first"):
        made["span"] += 1
        time.sleep(0.2)  # the sink is behind from here on
    for number in range(300):
        with rs.task(f"item{number}"), rs.session(sample=number):
            for _ in range(int(sys.argv[1])):
                with rs.phase("generate", text="x" * 100):
                    pass
            for _ in range(int(sys.argv[2])):
                with rs.span("work", text="x" * 100):
                    pass
        made["task"] += 1
        made["session"] += 1
        made["phase"] += int(sys.argv[1])
        made["span"] += int(sys.argv[2])
        time.sleep(0.002)
    sink.gate.set()
    print(json.dumps(made))
"""


@pytest.mark.parametrize(
    ("phases", "spans", "all_kept", "some_dropped"),
    [
        pytest.param(2, 100, {"task", "session", "phase"}, {"span"}, id="spans first"),
        pytest.param(100, 2, {"task", "session"}, {"span", "phase"}, id="then phases"),
    ],
)
def test_what_a_blocked_sink_drops_is_counted_and_in_order(
    lab: Lab, phases: int, spans: int, all_kept: set[str], some_dropped: set[str]
) -> None:
    program = lab.start(_OVERFLOW, phases, spans)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert program.returncode == 0
    assert err.splitlines() == [
        "Rollscope drops records because its sink is slow or gone; the run counts them"
    ]
    made: dict[str, int] = json.loads(out)
    read = dict.fromkeys(made, 0)
    for span in lab.spans():
        if span.status == "ok":
            read[span.kind] += 1
    (drops,) = lab.read().drops.values()
    assert {kind for kind in made if read[kind] == made[kind]} == all_kept
    assert {what.partition(".")[0] for what in drops} >= some_dropped
    for kind in some_dropped:
        assert read[kind] + drops[f"{kind}.slow_sink"] == made[kind]


def test_a_logging_handler_that_fails_costs_no_records(lab: Lab) -> None:
    lab.finish("""
        import logging, sys
        import rollscope as rs
        from tests.integration.misbehaviour import FlakySink

        class Failing(logging.Handler):
            def emit(self, record):
                raise RuntimeError("cannot log")

        logging.getLogger().addHandler(Failing())
        rs.init(sink=FlakySink(), drain_s=0.01)
        with rs.span("odd", category="nonsense", value=object()):
            pass
        assert rs.flush()
        with rs.span("later"):
            pass
    """)

    assert lab.statuses() == {"odd": "ok", "later": "ok"}


def test_a_run_that_is_removed_while_it_is_recorded_costs_what_was_in_it_only(lab: Lab) -> None:
    program = lab.start("""
        import os, shutil
        import rollscope as rs

        rs.init(drain_s=0.02)
        with rs.span("before"):
            pass
        assert rs.flush()
        shutil.rmtree(os.path.join(os.environ["ROLLSCOPE_DIR"], "run"))
        with rs.span("after"):
            pass
        assert rs.flush()
    """)
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err
    (sentence,) = err.splitlines()
    assert sentence.startswith("Rollscope cannot write the run 'run' (FileNotFoundError: ")
    assert lab.statuses() == {"after": "ok"}
    done = subprocess.run(lab.command("doctor", lab.run), capture_output=True, text=True)
    assert "never arrived" in done.stdout
