"""Forks, pools and child programs: each process records on its own, nothing is lost or doubled."""

from __future__ import annotations

import pytest

from tests.integration.support import PATIENCE_S, Lab


def test_a_forked_child_records_on_its_own_under_the_span_it_was_forked_in(lab: Lab) -> None:
    lab.finish("""
        import os, sys
        import rollscope as rs

        rs.init(drain_s=60, role="parent")
        with rs.span("finished before"):
            pass
        with rs.task("item"), rs.session(sample=4), rs.span("across"):
            rs.event("before")
            child = os.fork()
            if not child:
                rs.event("in child")
                with rs.span("in child"):
                    pass
                sys.exit()
            with rs.span("in parent"):
                pass
            assert os.waitpid(child, 0)[1] == 0
    """)

    statuses = lab.statuses()
    assert statuses == {
        "finished before": "ok",
        "task": "ok",
        "session": "ok",
        "across": "ok",
        "in child": "ok",
        "in parent": "ok",
    }
    across, in_child, in_parent = map(lab.named, ("across", "in child", "in parent"))
    assert in_child.parent_id == in_parent.parent_id == across.span_id
    assert in_child.process != in_parent.process == across.process
    assert (in_child.trace_id, in_child.task_key, in_child.sample) == (across.trace_id, "item", 4)
    folded = lab.read()
    assert folded.processes[in_child.process].parent == across.process
    assert [event.name for event in folded.events] == ["before", "in child"]


def test_a_child_that_leaves_the_spans_it_was_forked_in_goes_on_outside_of_them(lab: Lab) -> None:
    lab.finish("""
        import os, sys
        import rollscope as rs

        rs.init(drain_s=60)
        with rs.span("outer"):
            with rs.span("inner"):
                is_child = os.fork() == 0
            with rs.span("child" if is_child else "parent"):
                pass
        with rs.span("child's root" if is_child else "parent's root"):
            pass
        if not is_child:
            assert os.wait()[1] == 0
    """)

    outer = lab.named("outer")
    assert lab.named("child").parent_id == outer.span_id
    assert lab.named("parent").parent_id == outer.span_id
    assert lab.named("child's root").parent_id is None
    assert lab.named("parent's root").parent_id is None
    assert set(lab.statuses().values()) == {"ok"}


def test_spans_made_before_a_fork_and_entered_after_it_are_told_apart(lab: Lab) -> None:
    lab.finish("""
        import os
        import rollscope as rs

        rs.init(drain_s=60)
        made = [rs.span(f"span{number}") for number in range(3)]
        is_child = os.fork() == 0
        for span in made:
            with span:
                span.set(is_child=is_child)
        if not is_child:
            assert os.wait()[1] == 0
    """)

    spans = lab.spans()
    assert len(spans) == 6
    assert sorted((span.name, span.attrs["is_child"]) for span in spans) == [
        (f"span{number}", is_child) for number in range(3) for is_child in (False, True)
    ]


def test_a_child_can_tell_more_about_a_session_that_its_parent_opened(lab: Lab) -> None:
    lab.finish("""
        import os, sys
        import rollscope as rs

        rs.init(drain_s=60)
        with rs.session(sample=1) as session:
            if os.fork() == 0:
                session.set(scored_by="child")
                session.finish("accepted", reward=1.0)
                sys.exit()
            assert os.wait()[1] == 0
    """)

    (session,) = lab.spans()
    assert session.attrs == {"scored_by": "child", "reward": 1.0}
    assert session.outcome == "accepted"


def test_forks_of_forks_each_keep_a_log_of_their_own(lab: Lab) -> None:
    lab.finish("""
        import os, sys
        import rollscope as rs

        def descend(depth):
            with rs.span(f"depth {depth}"):
                if depth < 5:
                    child = os.fork()
                    if child == 0:
                        descend(depth + 1)
                        sys.exit()
                    assert os.waitpid(child, 0)[1] == 0

        rs.init(drain_s=60)
        descend(0)
    """)

    spans = {span.name: span for span in lab.spans()}
    assert sorted(spans) == [f"depth {depth}" for depth in range(6)]
    processes = lab.read().processes
    assert len(processes) == 6
    for depth in range(1, 6):
        outer, inner = spans[f"depth {depth - 1}"], spans[f"depth {depth}"]
        assert inner.parent_id == outer.span_id
        assert processes[inner.process].parent == outer.process


def test_a_fork_from_a_thread_while_others_record_loses_and_doubles_nothing(lab: Lab) -> None:
    lab.finish("""
        import os, threading, time
        import rollscope as rs

        def record(name, number):
            for at in range(number):
                with rs.span(f"{name}.{at}"):
                    pass

        def fork(number):
            for at in range(4):
                child = os.fork()
                if child == 0:
                    try:
                        record(f"child{number}.{at}", 200)
                        assert rs.flush(20)
                    finally:
                        os._exit(0)
                assert os.waitpid(child, 0)[1] == 0

        rs.init(drain_s=0.01)
        threads = [
            *(threading.Thread(target=record, args=(f"thread{n}", 5000)) for n in range(2)),
            *(threading.Thread(target=fork, args=(n,)) for n in range(3)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """)

    statuses = lab.statuses()
    assert set(statuses.values()) == {"ok"}
    assert len(statuses) == 2 * 5000 + 3 * 4 * 200


_WORK = """
    import os
    import rollscope as rs

    def work(number):
        with rs.span(f"work{number}"):
            with rs.span(f"inner{number}"):
                pass
        return os.getpid()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_record_under_the_span_that_started_them(
    lab: Lab, method: str
) -> None:
    lab.finish(
        _WORK
        + """
    if __name__ == "__main__":
        import multiprocessing, sys

        context = multiprocessing.get_context(sys.argv[1])
        rs.init(drain_s=60)
        with rs.task("item"), rs.span("starter"):
            processes = [
                context.Process(target=rs.carry(work), args=(number,)) for number in range(3)
            ]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
                assert process.exitcode == 0
        """,
        method,
    )

    _check_work(lab, 3)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_pool_records_under_the_span_that_submitted(lab: Lab, method: str) -> None:
    lab.finish(
        _WORK
        + """
    if __name__ == "__main__":
        import multiprocessing, sys
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context(sys.argv[1])
        rs.init(drain_s=60)
        with rs.task("item"), rs.span("starter"):
            with ProcessPoolExecutor(2, mp_context=context) as pool:
                pids = set(pool.map(rs.carry(work), range(20)))
        assert os.getpid() not in pids
        """,
        method,
    )

    _check_work(lab, 20)


def _check_work(lab: Lab, number: int) -> None:
    spans = {span.name: span for span in lab.spans()}
    starter = spans["starter"]
    assert len(spans) == 2 + 2 * number
    for at in range(number):
        work, inner = spans[f"work{at}"], spans[f"inner{at}"]
        assert work.parent_id == starter.span_id
        assert inner.parent_id == work.span_id
        assert work.trace_id == starter.trace_id
        assert work.task_key == "item"
        assert work.process != starter.process
        assert (work.status, inner.status) == ("ok", "ok")


def test_a_pool_that_is_terminated_loses_nothing_it_had_finished(lab: Lab) -> None:
    lab.finish(
        _WORK
        + """
    if __name__ == "__main__":
        import multiprocessing

        rs.init(drain_s=60)
        with multiprocessing.get_context("fork").Pool(2) as pool:  # leaving it terminates
            pool.map(work, range(20))
        """
    )

    names = {span.name for span in lab.spans() if span.status == "ok"}
    assert {f"work{number}" for number in range(20)} <= names


def test_a_daemonic_process_is_written_out_when_its_parent_ends(lab: Lab) -> None:
    lab.finish("""
        import multiprocessing, time
        import rollscope as rs

        def work(done):
            with rs.span("finished"):
                pass
            with rs.span("interrupted"):
                done.set()
                time.sleep(60)

        rs.init(drain_s=60)
        context = multiprocessing.get_context("fork")
        done = context.Event()
        context.Process(target=work, args=(done,), daemon=True).start()
        done.wait()
    """)

    assert lab.statuses() == {"finished": "ok", "interrupted": "lost"}


def test_a_subprocess_joins_the_run_and_the_span_that_started_it(lab: Lab) -> None:
    (lab.folder / "tool.py").write_text("""
import rollscope as rs

rs.init(role="tool", drain_s=60)
with rs.span("in tool"):
    pass
""")
    lab.finish("""
        import subprocess, sys
        import rollscope as rs

        rs.init(run="elsewhere", dir="other", drain_s=60)
        with rs.task("prompt ü, =;\\udc80" * 2, group="g"), rs.session(sample=2):
            with rs.phase("toolcall"):
                subprocess.run([sys.executable, "tool.py"], env=rs.child_env(), check=True)
    """)

    lab.run = lab.folder / "other" / "elsewhere"
    toolcall, in_tool = lab.named("toolcall"), lab.named("in tool")
    assert in_tool.parent_id == toolcall.span_id
    for field in ("trace_id", "task_key", "group", "sample", "session_id"):
        assert getattr(in_tool, field) == getattr(toolcall, field)
    assert lab.read().processes[in_tool.process].role == "tool"
    assert toolcall.task_key == "prompt ü, =;\\udc80" * 2


def test_a_task_key_of_any_size_does_not_keep_a_subprocess_from_starting(lab: Lab) -> None:
    # The kernel takes 128 KiB for one variable.
    lab.finish("""
        import subprocess
        import rollscope as rs

        rs.init()
        with rs.task("x" * 1_000_000, group="ü" * 1_000_000):
            subprocess.run(["true"], env=rs.child_env(), check=True)
            assert sum(map(len, rs.inject().values())) < 8192
    """)


def test_processes_with_the_same_seed_share_no_id(lab: Lab) -> None:
    program = """
        import random
        import rollscope as rs

        random.seed(0)
        rs.init()
        for number in range(300):
            with rs.task(f"item{number}"), rs.session(), rs.phase("generate"):
                random.random()
    """
    programs = [lab.start(program) for _ in range(4)]
    for started in programs:
        assert started.wait(PATIENCE_S) == 0

    spans = lab.spans()
    assert len(spans) == 4 * 900  # one id twice would have merged two spans
    traces = [span.trace_id for span in spans if span.kind == "task"]
    assert len(set(traces)) == 4 * 300
    assert len({span.process for span in spans}) == 4


def test_a_function_that_runs_between_fork_and_exec_leaves_the_child_unharmed(lab: Lab) -> None:
    lab.finish("""
        import os, subprocess
        import rollscope as rs

        rs.init()
        with rs.span("starter"):
            done = subprocess.run(
                ["sh", "-c", "echo out; echo err >&2; exit 4"],
                preexec_fn=os.setsid, capture_output=True, text=True,
            )
        assert (done.returncode, done.stdout, done.stderr) == (4, "out\\n", "err\\n"), done
    """)

    assert lab.statuses() == {"starter": "ok"}


def test_a_forked_child_that_records_nothing_leaves_no_log(lab: Lab) -> None:
    lab.finish("""
        import os
        import time
        import rollscope as rs

        rs.init()
        with rs.span("parent"):
            pass
        child = os.fork()
        if child == 0:
            time.sleep(0.4)  # two drains
            os._exit(0)
        os.waitpid(child, 0)
    """)

    assert len(list(lab.run.glob("log/*.rsl"))) == 1


def test_a_program_that_changes_its_directory_goes_on_in_the_same_run(lab: Lab) -> None:
    lab.finish(
        """
        import os, shutil, subprocess, sys, tempfile
        import rollscope as rs

        rs.init()
        elsewhere = tempfile.mkdtemp()
        os.chdir(elsewhere)
        with rs.span("parent"):
            child = "import rollscope as rs; rs.init(); rs.span('subprocess').__enter__()"
            subprocess.run([sys.executable, "-c", child], env=rs.child_env(), check=True)
            os.rmdir(elsewhere)
            assert rs.child_env()["ROLLSCOPE_RUN"] == "run"
            assert rs.carry(int)("7") == 7
            child = os.fork()
            if not child:
                with rs.span("forked"):
                    sys.exit()
            assert os.waitpid(child, 0)[1] == 0
        """,
        env={"ROLLSCOPE_DIR": "runs"},
    )
    assert lab.statuses() == {"parent": "ok", "forked": "ok", "subprocess": "lost"}


def test_a_program_whose_directory_is_gone_records_once_it_has_another(lab: Lab) -> None:
    program = lab.start(
        """
        import os, sys, tempfile
        import rollscope as rs

        there, gone = os.getcwd(), tempfile.mkdtemp()
        os.chdir(gone)
        os.rmdir(gone)
        rs.init()
        with rs.span("nowhere"):
            rs.child_env()
            rs.carry(int)
        os.chdir(there)
        assert rs.flush()
        """,
        env={"ROLLSCOPE_DIR": "runs"},
    )
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err
    assert err.count("\n") <= 1, err
    assert lab.statuses() == {"nowhere": "ok"}


def test_a_child_forked_while_a_thread_shuts_down_can_record_anew(lab: Lab) -> None:
    lab.finish("""
        import logging, os, sys, threading, time
        import rollscope as rs

        class Hangs:
            def open(self, opening):
                pass
            def write(self, frame):
                writing.set()
                time.sleep(60)
            def close(self):
                pass

        logging.disable()
        writing = threading.Event()
        rs.init(sink=Hangs(), drain_s=0.02)
        assert writing.wait(30)
        stopping = threading.Thread(target=rs.shutdown, args=(2.0,))
        stopping.start()
        while rs.enabled():
            time.sleep(0.001)
        child = os.fork()
        if not child:
            rs.init(sink="file")
            with rs.span("in child"):
                pass
            os._exit(0 if rs.shutdown() else 1)
        assert os.waitpid(child, 0)[1] == 0
        stopping.join()
    """)
    assert lab.statuses() == {"in child": "ok"}
