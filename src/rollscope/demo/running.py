"""The whole demo: its processes, its training, the fault that was asked for, and its end."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Final

import rollscope as rs
from rollscope.demo.children import Child
from rollscope.demo.episode import Multiply
from rollscope.demo.faults import Fault
from rollscope.demo.page import Page
from rollscope.demo.replicas import Replicas
from rollscope.demo.sandbox import Sandbox
from rollscope.demo.training import StepDone, Training

__all__ = ["run_demo"]

_REPLICAS: Final = 2
_FAULT_STEP: Final = 2
"""The first steps go well, so that there is something to compare with."""
_FAULT_AFTER_S: Final = 0.2
_HANGING_CALL: Final = 150
_SKEW_S: Final = 2.5


def run_demo(
    run: Path, *, steps: int, seed: int, fault: Fault | None, page: Page | None
) -> Iterator[StepDone]:
    """Train, and tell of every step; all processes but the page have ended when it has.

    Args:
        run: The run directory; recording has begun.
        steps: How many steps.
        seed: Makes runs differ.
        fault: What goes wrong.
        page: Through which a replica on another host records.
    """
    with contextlib.ExitStack() as stack:

        def start(child: Child) -> Child:
            stack.callback(child.close)
            return child

        replicas = [start(_replica(rank, seed, fault, page)) for rank in range(_REPLICAS)]
        slow = ("--slow",) if fault is Fault.SLOW_REWARD else ()
        scorer = start(Child("rollscope.demo.scorer", "--seed", str(seed), *slow, role="reward"))
        for child in (*replicas, scorer):
            child.wait_ready()
        hang_at = _HANGING_CALL if fault is Fault.STUCK_TOOL else None
        workflow = Multiply(f"http://127.0.0.1:{scorer.port}", Sandbox(hang_at=hang_at))
        training = Training(Replicas(replicas), workflow, seed, run / "checkpoints")
        yield from training.run(steps, _before_step(fault, replicas))


def _replica(rank: int, seed: int, fault: Fault | None, page: Page | None) -> Child:
    arguments = ["--rank", str(rank), "--seed", str(seed * 100 + rank)]
    environ = {}
    if fault is Fault.SKEWED_CLOCK and page is not None and rank == _REPLICAS - 1:
        arguments += ["--skew-s", str(_SKEW_S)]
        environ = {"ROLLSCOPE_SINK": page.sink, "ROLLSCOPE_TOKEN": page.token}
    return Child("rollscope.demo.replica", *arguments, role="replica", rank=rank, environ=environ)


def _before_step(fault: Fault | None, replicas: list[Child]) -> Callable[[int], None]:
    def kill() -> None:
        rs.event("demo.fault", fault=Fault.DEAD_REPLICA.value)
        replicas[-1].kill()

    def act(step: int) -> None:
        if fault is Fault.DEAD_REPLICA and step == _FAULT_STEP:
            Timer(_FAULT_AFTER_S, kill).start()

    return act
