"""Recording over a real Ray: one tree from many processes, through a hub that may die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import ray

import rollscope as rs
from rollscope.model.kinds import Status
from rollscope.model.records import ProcessRecord, Record, SpanRecord
from rollscope.rayhub import install, uninstall
from rollscope.rayhub.hub import NAMESPACE, hub_name
from rollscope.store.run import RunFollower
from tests.integration.support import PATIENCE_S, eventually
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = IGNORE_LEAKS_OF_RAY

BURST = 100


class Place(NamedTuple):
    """Where the runs of these tests lie; one hub serves them all."""

    directory: Path
    spool: Path

    def record(self, run: str) -> None:
        """Begin to record in this process."""
        rs.init(run=run, dir=self.directory, sink="ray", spool_dir=str(self.spool))

    def records(self, run: str) -> list[Record]:
        path = self.directory / run
        return list(RunFollower(path).poll(final=True)) if path.is_dir() else []

    def ended(self, run: str) -> list[SpanRecord]:
        return [
            record
            for record in self.records(run)
            if isinstance(record, SpanRecord) and record.status is not Status.OPEN
        ]

    def hub(self) -> Any:
        return ray.get_actor(hub_name(str(self.directory)), namespace=NAMESPACE)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_cluster():
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("ray")
    return Place(folder / "runs", folder / "spool")


@pytest.fixture(autouse=True)
def no_leaks(clean_environment: None) -> Iterator[None]:
    """Look for threads only: Ray keeps its connections as long as it runs."""
    install()
    yield
    rs.shutdown()
    uninstall()
    eventually(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("rollscope-")],
        "the threads of the recorder end",
    )


def make(actor_class: Any, **options: Any) -> Any:
    """Make an actor."""
    return actor_class.options(**options).remote()


@ray.remote(num_cpus=0)
def run_function(depth: int) -> int:
    with rs.span("function"):
        return ray.get(run_function.remote(depth - 1)) + 1 if depth else 0


@ray.remote(num_cpus=0)
class Inner:
    def work(self) -> int:
        with rs.span("inner"):
            return os.getpid()


@ray.remote(num_cpus=0)
class Outer:
    def __init__(self) -> None:
        with rs.span("constructor"):
            self.inner = make(Inner)

    async def work(self, *, marker: str) -> tuple[int, str]:
        with rs.span("outer"):
            return await self.inner.work.remote(), marker

    async def stream(self, most: int) -> AsyncIterator[int]:
        with rs.span("stream"):
            for number in range(most):
                yield number

    async def fail(self) -> None:
        with rs.span("failing"):
            raise LookupError("not there")


@ray.remote(num_cpus=0)
class Worker:
    """Records in bursts, as fast as it can."""

    def __init__(self) -> None:
        self.made = 0

    def record(self, bursts: int) -> int:
        for _ in range(bursts):
            with rs.span("burst"):
                for _ in range(BURST):
                    with rs.span("small"):
                        self.made += 1
        return self.made

    def die(self) -> None:
        with rs.span("last words"):
            pass
        rs.flush()
        os.kill(os.getpid(), signal.SIGKILL)


class Inherited:
    def inherited(self) -> bool:
        return bool(rs.current())


@ray.remote(num_cpus=0, concurrency_groups={"io": 2})  # type: ignore[call-overload]
class Grouped(Inherited):
    @ray.method(concurrency_group="io")
    def grouped(self) -> bool:
        return bool(rs.current())

    @ray.method(num_returns=2)
    def pair(self) -> tuple[bool, bool]:
        return bool(rs.current()), bool(rs.current())

    def count(self, most: int) -> Iterator[bool]:
        for _ in range(most):
            yield bool(rs.current())


@ray.remote(num_cpus=0)
def is_followed() -> bool:
    return bool(rs.current())


def see_contexts(actor: Any) -> set[bool]:
    """Call an actor in every way, and give whether the calls saw a span."""
    refs = [actor.inherited.remote(), actor.grouped.remote(), *actor.pair.remote()]
    refs += list(actor.count.remote(2))
    return set(ray.get(refs))


def test_driver_functions_and_actors_record_one_tree(place: Place) -> None:
    place.record("tree")
    with rs.task("gsm8k/1"), rs.session(sample=2), rs.phase("generate") as phase:
        assert ray.get(run_function.remote(1)) == 1
        outer = make(Outer)
        pid, marker = ray.get(outer.work.remote(marker="seen"))
        assert (pid != os.getpid(), marker) == (True, "seen")
        assert [ray.get(ref) for ref in outer.stream.remote(3)] == [0, 1, 2]
        with pytest.raises(LookupError, match="not there"):
            ray.get(outer.fail.remote())
        ref = phase.ref
    assert ref is not None
    wanted = {"function", "constructor", "outer", "inner", "stream", "failing", "generate"}
    eventually(lambda: wanted <= {s.name for s in place.ended("tree")}, "all spans arrive")

    spans = place.ended("tree")
    by_name = {span.name: span for span in spans}
    outer_function, inner_function = sorted(
        (span for span in spans if span.name == "function"), key=lambda span: span.start_ns
    )
    assert inner_function.parent_id == outer_function.span_id
    assert by_name["inner"].parent_id == by_name["outer"].span_id
    roots = ("constructor", "outer", "stream", "failing")
    assert {by_name[name].parent_id for name in roots} == {outer_function.parent_id}
    assert outer_function.parent_id == by_name["generate"].span_id
    assert by_name["failing"].status is Status.ERROR
    assert {(s.trace_id, s.task_key, s.sample) for s in spans if s.name in wanted} == {
        (ref.trace_id.hex(), "gsm8k/1", 2)
    }
    assert len({span.process for span in spans}) >= 4


def test_processes_say_where_in_the_cluster_they_are(place: Place) -> None:
    place.record("whereabouts")
    worker = make(Worker, name="bob")
    ray.get(worker.record.remote(1))
    eventually(lambda: len(place.ended("whereabouts")) > BURST, "all spans arrive")
    headers = [one for one in place.records("whereabouts") if isinstance(one, ProcessRecord)]
    (actor,) = {(one.role, one.actor, one.actor_name, one.node) for one in headers if one.actor}
    here = ray.get_runtime_context()
    assert actor == ("Worker", "Worker", "bob", here.get_node_id())
    assert {one.job for one in headers if one.role != "receiver"} == {here.get_job_id()}


def test_an_actor_made_before_recording_began_joins_with_its_first_call(place: Place) -> None:
    worker = make(Worker)
    assert ray.get(worker.record.remote(1)) == BURST
    place.record("late")
    assert ray.get(worker.record.remote(1)) == 2 * BURST
    eventually(lambda: len(place.ended("late")) == BURST + 1, "what came after arrives")


def test_what_was_used_before_installing_works_on_and_what_is_made_later_follows(
    place: Place,
) -> None:
    uninstall()
    old = make(Grouped)
    assert see_contexts(old) == {False}
    assert not ray.get(is_followed.remote())
    place.record("mixed")
    install()
    with rs.span("caller"):
        assert see_contexts(old) == {False}
        assert see_contexts(make(Grouped)) == {True}
        assert ray.get(is_followed.remote())
    assert see_contexts(old) == {False}


def test_every_span_is_kept_once_though_the_hub_dies(place: Place) -> None:
    place.record("dying")
    with rs.span("root"):
        worker = make(Worker)
        ray.get(worker.record.remote(1))
        eventually(lambda: place.ended("dying"), "the first spans arrive")
        going = worker.record.remote(100)
        ray.kill(place.hub(), no_restart=False)
        made = ray.get(going)
        going = worker.record.remote(100)
        pid = eventually(lambda: hub_pid(place), "the hub lives again")
        os.kill(pid, signal.SIGKILL)
        with rs.span("meanwhile"):
            made = ray.get(going)
    expected = made + made // BURST + 2
    eventually(lambda: len(place.ended("dying")) >= expected, "all spans arrive")
    times_ended = Counter(span.span_id for span in place.ended("dying"))
    assert (len(times_ended), set(times_ended.values())) == (expected, {1})


def hub_pid(place: Place) -> int | None:
    try:
        pid: int = ray.get(place.hub().pid.remote(), timeout=5)
    except (ray.exceptions.RayError, ValueError):
        return None
    return pid


def test_what_a_killed_worker_left_is_taken_over(place: Place) -> None:
    place.record("killed")
    worker = make(Worker)
    ray.get(worker.record.remote(1))
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(worker.die.remote())
    eventually(
        lambda: "last words" in {span.name for span in place.ended("killed")},
        "what it left is kept",
    )


def test_actors_go_on_after_their_driver_has_ended(place: Place, tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    program = tmp_path / "driver.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import logging, ray, rollscope as rs
            from rollscope.rayhub import install
            from tests.integration.test_ray_hub import Worker
            ray.init({address!r}, log_to_driver=False, logging_level=logging.ERROR)
            install()
            rs.init(run="orphan", dir={str(place.directory)!r}, sink="ray",
                    spool_dir={str(place.spool)!r})
            worker = Worker.options(lifetime="detached", name="heir", namespace="ns").remote()
            with rs.span("driver"):
                ray.get(worker.record.remote(1))
            """
        )
    )
    env = {name: value for name, value in os.environ.items() if name != "ROLLSCOPE_RAISE"}
    subprocess.run(
        [sys.executable, str(program)],
        env={**env, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        timeout=2 * PATIENCE_S,
    )
    worker = ray.get_actor("heir", namespace="ns")
    ray.get(worker.record.remote(1))  # carries nothing: nothing is recorded here
    eventually(lambda: len(place.ended("orphan")) == 2 * (BURST + 1) + 1, "all spans arrive")
    ray.kill(worker)


def test_nothing_is_lost_when_ray_is_shut_down_first(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        textwrap.dedent(
            """
            import logging, ray, rollscope as rs
            from rollscope.rayhub import follow
            rs.init(run="short", dir="runs", sink="ray", spool_dir="spool")
            ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False,
                     object_store_memory=100_000_000, logging_level=logging.ERROR)

            @follow
            @ray.remote
            def work():
                with rs.span("remote"):
                    pass

            with rs.span("before"):
                for _ in range(3):
                    ray.get(work.remote())
            ray.shutdown()
            with rs.span("after"):
                pass
            """
        )
    )
    env = {name: value for name, value in os.environ.items() if name != "ROLLSCOPE_RAISE"}
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**env, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    place = Place(tmp_path / "runs", tmp_path / "spool")
    ended = Counter(span.name for span in place.ended("short"))
    assert ended == {"before": 1, "remote": 3, "after": 1}
    assert "Rollscope" not in done.stderr
