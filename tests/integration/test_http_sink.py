"""Frames over HTTP: a server that is there, away, busy, rude or slow, and what becomes of them."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from tests.collecting_server import CERTIFICATE, TOKEN, CollectingServer
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


SECRET = "s3cr3t-s3cr3t"  # noqa: S105  (nobody's)


@pytest.fixture
def server() -> Iterator[CollectingServer]:
    with CollectingServer() as server:
        yield server


@pytest.fixture
def spools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the directory in which every process of the test spools."""
    spools = tmp_path / "spools"
    monkeypatch.setenv("ROLLSCOPE_SPOOL_DIR", str(spools))
    monkeypatch.setenv("ROLLSCOPE_TOKEN", TOKEN)
    return spools


def record(*names: str) -> None:
    for name in names:
        with rs.span(name):
            pass


def waiting(spools: Path) -> int:
    """Give how many bytes lie in all spools."""
    return sum(path.stat().st_size for path in spools.glob("**/*.rsl"))


def test_frames_arrive_over_one_connection_and_leave_nothing_behind(
    server: CollectingServer, spools: Path
) -> None:
    rs.init(sink=server.address, run="a-run", tags={"lr": "1e-5 ü"}, payloads=True, drain_s=0.02)
    with rs.span("one"):
        rs.payload("messages", "hello")
    eventually(lambda: server.names() == ["one"], "the first span arrives")
    record("two")
    assert rs.shutdown()

    assert server.names() == ["one", "two"]
    numbers = sorted(batch.number for batch in server.batches())
    assert numbers == list(range(-1, len(numbers) - 1))
    assert len(server.connections) == 1
    headers = server.taken[-1].headers
    assert headers["Content-Type"] == "application/x-rollscope-frames"
    assert headers["Rollscope-Run"] == "a-run"
    assert headers["Rollscope-Process"] == server.batches()[0].process.hex()
    assert headers["Rollscope-Tags"] == "%7B%22lr%22%3A%221e-5%20%C3%BC%22%7D"
    assert (
        "Content-Encoding" not in headers
    )  # to this very machine it would cost more than it saves
    assert list(spools.iterdir()) == []


def test_the_server_is_told_how_the_clocks_stand(server: CollectingServer, spools: Path) -> None:
    rs.init(sink=server.address, drain_s=0.02)
    record("one")
    eventually(server.names, "the span arrives")
    rs.shutdown()

    first, second = (taken.headers["Rollscope-Clock"].split() for taken in server.taken[:2])
    assert server.taken[0].batches == []
    sent, asked, received, answered, came = int(second[0]), *map(int, second[1:])
    assert [asked] == [int(number) for number in first]
    assert asked < came <= sent < time.perf_counter_ns()
    assert 0 <= answered - received <= came - asked


def test_a_token_in_the_address_lets_in_and_shows_up_nowhere(
    server: CollectingServer,
    spools: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("ROLLSCOPE_TOKEN")
    server.token = SECRET
    rs.init(sink=f"{server.address}/?token={SECRET}", viewer=True, drain_s=0.02)
    record("one")
    eventually(server.names, "the span arrives")
    server.stop()
    record("two")
    rs.shutdown()

    files = [path for path in spools.glob("**/*") if path.is_file()]
    assert files
    assert not any(SECRET.encode() in path.read_bytes() for path in files)
    assert len(caplog.messages) == 2
    assert not any(SECRET in message for message in caplog.messages)


def test_frames_go_over_tls_only_to_a_server_that_is_trusted(
    spools: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rollscope.instrument.sinks.shipping._AWAY_S", 0.1)
    with CollectingServer(is_tls=True) as server:
        rs.init(sink=server.address, drain_s=0.02)
        record("one")
        eventually(lambda: caplog.messages, "it is told")
        rs.shutdown()
        assert "SSLCertVerificationError" in caplog.messages[0]
        assert server.taken == []

        rs.init(sink=server.address, ca_file=CERTIFICATE, run="another", drain_s=0.02)
        record("two")
        eventually(lambda: sorted(server.names()) == ["one", "two"], "both arrive")
        rs.shutdown()
    clock = server.taken[-1].headers["Rollscope-Clock"].split()
    assert len(clock) == 5
    assert list(spools.iterdir()) == []


def test_a_wrong_token_is_told_once_and_loses_nothing(
    server: CollectingServer, spools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rs.init(sink=server.address, token=SECRET, drain_s=0.02)
    record("one")
    eventually(lambda: caplog.messages, "it is told")
    record("two")
    rs.shutdown()

    denied, left = caplog.messages
    assert "the token is wrong or missing" in denied
    assert "wait in" in left
    rs.init(sink=server.address, run="another", drain_s=0.02)
    eventually(lambda: sorted(server.names()) == ["one", "two"], "the next process delivers")
    rs.shutdown()
    assert list(spools.iterdir()) == []


def test_a_server_that_comes_back_gets_everything_once_and_the_program_hears_nothing(
    server: CollectingServer, spools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rs.init(sink=server.address, drain_s=0.02)
    record("before")
    eventually(server.names, "the first span arrives")
    server.stop()
    record(*(f"away{number}" for number in range(100)))
    assert rs.flush()
    assert waiting(spools) > 0
    server.start()
    eventually(lambda: len(server.names()) == 101, "all spans arrive")
    assert rs.shutdown()

    assert set(Counter(server.names()).values()) == {1}
    assert caplog.messages == []


def test_a_connection_that_is_cut_in_the_middle_of_an_answer_loses_nothing(
    server: CollectingServer, spools: Path
) -> None:
    cut: list[int] = []

    def cut_three(handler: Any, body: bytes) -> bool:
        if len(cut) < 3:
            cut.append(len(body))
            handler.cut()
        return len(cut) < 3

    server.answer = cut_three
    rs.init(sink=server.address, drain_s=0.02)
    record("one")
    eventually(server.names, "the span arrives")
    rs.shutdown()
    assert len(cut) == 3


@pytest.mark.parametrize("status", [429, 503, 507])
def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(
    server: CollectingServer, spools: Path, status: int
) -> None:
    asked: list[float] = []

    def busy(handler: Any, body: bytes) -> bool:
        asked.append(time.monotonic())
        if len(asked) > 1:
            return False
        return bool(handler.respond(status, {"error": "busy"}, Retry_After="0.7"))

    server.answer = busy
    rs.init(sink=server.address, drain_s=0.02)
    record("one")
    eventually(server.names, "the span arrives")
    rs.shutdown()
    assert asked[1] - asked[0] >= 0.7


def test_refused_frames_are_set_aside_told_and_not_tried_again(
    server: CollectingServer, spools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[bytes] = []

    def refuse_first(handler: Any, body: bytes) -> bool:
        refused.append(body)
        if len(refused) > 1:
            return False
        return bool(handler.respond(400, {"error": "bad frames", "advice": "upgrade"}))

    server.answer = refuse_first
    rs.init(sink=server.address, drain_s=0.02)
    record("one")
    eventually(lambda: refused, "the first request comes")
    record("two")
    eventually(lambda: "two" in server.names(), "the second span arrives")
    rs.shutdown()

    (kept,) = spools.glob("*/refused/*.rsl")
    assert kept.read_bytes() == refused[0]
    assert refused[0] not in refused[1:]
    (told,) = caplog.messages
    assert "bad frames; upgrade" in told
    assert str(kept.parent) in told


def test_a_request_that_is_too_large_is_halved(server: CollectingServer, spools: Path) -> None:
    sizes: list[int] = []

    def limit(handler: Any, body: bytes) -> bool:
        sizes.append(len(body))
        return len(body) > 400_000 and bool(handler.respond(413, {"error": "too large"}))

    server.answer = limit
    server.stop()
    rs.init(sink=server.address, drain_s=0.02)
    for number in range(3000):
        with rs.span(f"span{number}", text="x" * 200):
            pass
    assert rs.flush()
    server.start()
    eventually(lambda: len(server.names()) == 3000, "all spans arrive")
    rs.shutdown()
    assert max(sizes) > 400_000


def test_what_answers_but_is_no_rollscope_takes_nothing(
    server: CollectingServer, spools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = lambda handler, body: handler.respond(200, {"hello": "world"})
    rs.init(sink=server.address, drain_s=0.02)
    record("one")
    eventually(lambda: caplog.messages, "it is told")
    rs.shutdown()
    assert "is no Rollscope" in caplog.messages[0]
    assert waiting(spools) > 0


def test_a_server_that_hangs_holds_up_neither_calls_nor_flush_nor_the_end(
    server: CollectingServer, spools: Path
) -> None:
    def hang(handler: Any, body: bytes) -> bool:
        server.let_go.wait(PATIENCE_S)
        handler.cut()
        return True

    server.answer = hang
    rs.init(sink=server.address, drain_s=0.02)
    started = time.thread_time()
    for number in range(20_000):
        with rs.span(f"span{number}"):
            pass
    assert time.thread_time() - started < 5
    assert rs.flush(20)
    ended = time.monotonic()
    assert rs.shutdown()
    assert time.monotonic() - ended < 5
    assert waiting(spools) > 0


def test_a_full_spool_costs_only_what_is_counted(server: CollectingServer, spools: Path) -> None:
    server.stop()
    rs.init(sink=server.address, spool_mb=1, buffer_mb=1, drain_s=0.02)
    for number in range(20_000):
        with rs.span("span", text="x" * 200):
            pass
        if number % 200 == 0:
            time.sleep(0.002)
    assert not rs.flush(0.5)
    assert waiting(spools) <= 2**20 + 300_000
    server.start()
    assert rs.flush(20)
    with rs.session():
        pass
    rs.shutdown()

    arrived = Counter(server.names())
    drops = [batch.drops for batch in server.batches() if batch.drops]
    assert drops[-1]["span.slow_sink"] > 0
    assert arrived["span"] + drops[-1]["span.slow_sink"] == 20_000
    assert arrived["session"] == 1
    assert list(spools.iterdir()) == []


_PROGRAM = """
    import sys
    import rollscope as rs

    rs.init(drain_s=0.02)
    with rs.span("done"):
        pass
    with rs.span("hanging"):
        assert rs.flush()
        print("recorded", flush=True)
        sys.stdin.readline()
"""


def test_what_a_killed_process_left_is_delivered_by_the_next_one(
    lab: Lab, server: CollectingServer, spools: Path
) -> None:
    server.stop()
    program = lab.start(_PROGRAM, env={"ROLLSCOPE_SINK": server.address})
    assert program.stdout is not None
    assert program.stdout.readline() == "recorded\n"
    program.send_signal(signal.SIGKILL)
    program.wait()
    (left,) = spools.iterdir()
    with open(left / "00000000.rsl", "ab") as torn:
        torn.write(b"RSF1torn")

    server.start()
    rs.init(sink=server.address, run="later", drain_s=0.02)
    eventually(lambda: not left.exists(), "it is taken over")
    rs.shutdown()

    assert server.names() == ["done"]
    assert {taken.headers["Rollscope-Run"] for taken in server.taken} == {"run", "later"}
    for taken in server.taken:
        is_theirs = taken.headers["Rollscope-Run"] == "run"
        assert ("Rollscope-Clock" in taken.headers) != is_theirs  # a clock that we know nothing of


def test_a_forked_child_and_its_parent_deliver_on_their_own(
    lab: Lab, server: CollectingServer, spools: Path
) -> None:
    lab.finish(
        """
        import os, sys
        import rollscope as rs

        rs.init(drain_s=0.02)
        with rs.span("before"):
            pass
        assert rs.flush()
        child = os.fork()
        if not child:
            with rs.span("in child"):
                pass
            sys.exit()
        with rs.span("in parent"):
            pass
        assert os.waitpid(child, 0)[1] == 0
        with rs.span("afterwards"):
            pass
        """,
        env={"ROLLSCOPE_SINK": server.address},
    )
    assert Counter(server.names()) == Counter(["before", "in child", "in parent", "afterwards"])
    assert len({batch.process for batch in server.batches()}) == 2
    for taken in server.taken:
        assert {batch.process.hex() for batch in taken.batches} <= {
            taken.headers["Rollscope-Process"]
        }
    assert list(spools.iterdir()) == []


def test_a_child_that_never_records_does_not_keep_what_its_dead_parent_left(
    lab: Lab, server: CollectingServer, spools: Path
) -> None:
    server.stop()
    program = lab.start(
        """
        import os, sys, time
        import rollscope as rs

        rs.init(drain_s=0.02)
        with rs.span("done"):
            pass
        assert rs.flush()
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            os._exit(0)
        time.sleep(60)
        """,
        env={"ROLLSCOPE_SINK": server.address},
    )
    assert program.stdout is not None
    child = int(program.stdout.readline())
    program.kill()
    program.wait()
    server.start()
    rs.init(sink=server.address, run="later", drain_s=0.02)
    eventually(lambda: "done" in server.names(), "it is delivered while the child lives")
    os.kill(child, 0)
    rs.shutdown()


def test_spawned_processes_and_subprocesses_send_to_the_same_server(
    lab: Lab, server: CollectingServer, spools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLLSCOPE_TOKEN")
    monkeypatch.delenv("ROLLSCOPE_SPOOL_DIR")
    lab.finish(
        """
        import multiprocessing, subprocess, sys
        import rollscope as rs

        CHILD = "import rollscope as rs; rs.init(); rs.trace('subprocess')(lambda: 0)()"

        def work(name):
            with rs.span(name):
                pass

        if __name__ == "__main__":
            address, token, spools = sys.argv[1:]
            rs.init(sink=address, token=token, spool_dir=spools, run="mine")
            with rs.span("parent"):
                spawned = multiprocessing.get_context("spawn").Process(
                    target=rs.carry(work), args=("spawned",)
                )
                spawned.start()
                spawned.join()
                subprocess.run([sys.executable, "-c", CHILD], env=rs.child_env(), check=True)
        """,
        server.address,
        TOKEN,
        spools,
    )
    assert sorted(server.names()) == ["parent", "spawned", "subprocess"]
    assert {taken.headers["Rollscope-Run"] for taken in server.taken} == {"mine"}


def test_a_limit_on_file_sizes_tears_no_frame_and_costs_only_what_is_counted(
    lab: Lab, server: CollectingServer, spools: Path
) -> None:
    server.stop()
    program = lab.start(
        """
        import resource, sys, time
        import rollscope as rs

        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        rs.init(drain_s=0.02, buffer_mb=1)
        for number in range(6000):
            with rs.span("span", text="x" * 200):
                pass
            if number % 200 == 0:
                time.sleep(0.01)
        assert not rs.flush(0.5)
        print("full", flush=True)
        sys.stdin.readline()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert rs.flush(20)
        """,
        env={"ROLLSCOPE_SINK": server.address},
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "full\n"
    server.start()
    _, err = program.communicate("go\n", timeout=PATIENCE_S)
    assert program.returncode == 0, err
    assert "File too large" in err
    drops = [batch.drops for batch in server.batches() if batch.drops]
    dropped = drops[-1].get("span.slow_sink", 0) if drops else 0
    assert len(server.names()) + dropped == 6000


def test_a_program_that_runs_out_of_descriptors_is_delivered_once_it_has_some(
    lab: Lab, server: CollectingServer, spools: Path
) -> None:
    lab.finish(
        """
        import resource, time
        import rollscope as rs

        rs.init(drain_s=0.02)
        with rs.span("before"):
            pass
        assert rs.flush()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
        held = []
        try:
            while True:
                held.append(open("/dev/null"))
        except OSError:
            pass
        for _ in range(20):
            with rs.span("without"):
                time.sleep(0.03)
        for file in held:
            file.close()
        with rs.span("after"):
            pass
        assert rs.flush()
        """,
        env={"ROLLSCOPE_SINK": server.address},
    )
    assert Counter(server.names()) == {"before": 1, "without": 20, "after": 1}
    assert waiting(spools) == 0
