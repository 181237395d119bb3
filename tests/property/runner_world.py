"""The world that the runner is fuzzed in: tasks that misbehave, a trainer, and laws that hold."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rollscope.runner import (
    ConcurrencyGate,
    Outcome,
    Reason,
    Retry,
    Runner,
    StalenessGate,
    Status,
    Tier,
    Verdict,
    ctx,
)
from rollscope.testing import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLEANUP_S", "KINDS", "CheckedLoop", "Trainer", "World"]

CLEANUP_S = 2.0

KINDS = {
    "ok": 8,
    "instant": 4,
    "none": 2,
    "rejected": 2,
    "failing": 3,
    "flaky": 3,
    "bad_call": 1,
    "plain": 1,
    "self_cancelling": 1,
    "exiting": 1,
    "never": 2,
    "swallowing": 2,
    "slow_cleanup": 2,
    "children": 2,
    "stuck_children": 1,
    "submitting": 1,
    "pausing": 2,
}


class CheckedLoop(VirtualTimeLoop):
    """Checks the laws after every turn of the loop."""

    check: Callable[[], None] | None = None

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]  # a private hook of asyncio's, and the only one
        if self.check is not None:
            self.check()


@dataclass
class Trainer:
    """Takes items in batches, and makes a version of each batch."""

    gate: StalenessGate
    batch: int
    staleness: int
    is_dynamic: bool
    rng: random.Random
    buffer: deque[Outcome] = field(default_factory=deque)
    taken: int = 0
    taken_ok: int = 0
    is_training: bool = False
    newest: tuple[int, int] = (-1, -1)
    """Start of the item consumed last, among those that started last."""
    consumed: int = 0

    def counts(self, outcome: Outcome) -> bool:
        if outcome.tier == "eval":
            return False
        return outcome.is_ok or (self.is_dynamic and outcome.status is Status.REJECTED)

    async def step(self, runner: Runner) -> None:
        """Fill the batch with what is there; if it is full, train on it."""
        if self.is_training:
            return
        while self.buffer and self.taken < self.batch:
            self._take(self.buffer.popleft(), runner.version or 0)
        if self.taken == self.batch and not self.taken_ok:
            self.taken = 0  # nothing to train on, so no version comes of it
        elif self.taken == self.batch:
            self.is_training = True
            await asyncio.sleep(self.rng.uniform(0, 3))
            self.taken = self.taken_ok = 0
            self.is_training = False
            runner.set_version((runner.version or 0) + 1)

    def _take(self, outcome: Outcome, version: int) -> None:
        assert outcome.version_start is not None
        last_start_ns = outcome.history[-1].started_ns if outcome.history else outcome.started_ns
        assert last_start_ns is not None
        began = (last_start_ns, outcome.id)
        is_overtaken = began < self.newest
        self.newest = max(self.newest, began)
        if not is_overtaken and outcome.attempts == 1:
            age = version - outcome.version_start
            assert age <= self.staleness, f"{outcome.id} is {age} versions old"
        self.taken += 1
        self.consumed += 1
        if outcome.is_ok:
            self.taken_ok += 1
            self.gate.consumed(1)
        else:
            self.gate.filtered(1)


class World:
    """One runner on a virtual loop, everything that was submitted to it, and its laws."""

    def __init__(self, seed: int, loop: CheckedLoop) -> None:
        self.rng = rng = random.Random(seed)
        self.loop = loop
        self.limit: int | None = rng.choice((None, 1, 2, 5, 16))
        self.slots = ConcurrencyGate(self.limit)
        gates: list[Any] = [self.slots]
        self.trainer: Trainer | None = None
        if rng.random() < 0.6:
            staleness, batch = rng.choice((0, 1, 3)), rng.choice((1, 2, 5))
            is_dynamic = rng.random() < 0.5
            gate = StalenessGate.bounded(staleness, batch=batch, dynamic=is_dynamic)
            self.trainer = Trainer(gate, batch, staleness, is_dynamic, rng)
            gates.append(gate)
        self.runner = Runner(
            gates=gates,
            inbox=rng.choice((5, 100, 10_000)),
            outbox=rng.choice((None, None, 1, 10)),
            tiers=(
                Tier(name="train", weight=rng.choice((1, 3))),
                Tier(name="eval", limit=rng.choice((None, 2)), strict=rng.random() < 0.3),
            ),
            retry=rng.choice(
                (
                    Retry(),
                    Retry(rules={OSError: "infra"}, per_task=2, base_s=1.0, cap_s=4.0),
                    Retry(rules={OSError: "infra"}, per_task=3, per_run=20, per_group=5),
                )
            ),
            timeout_s=rng.choice((None, None, 30.0)),
            stall_s=rng.choice((None, None, 5.0)),
            cleanup_s=CLEANUP_S,
            probe_s=None,
            clock=loop.clock_ns,
            seed=seed,
            breaker=None,
        )
        self.submitted: Counter[int] = Counter()
        self.given: Counter[int] = Counter()
        self.ended: Counter[str] = Counter()
        self.bodies = 0
        """Functions of tasks that are running, zombies among them."""
        self.lives = 0

    # --- laws ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Look at the laws that hold at every moment."""
        ledger = self.runner.ledger()
        assert ledger.adds_up(), ledger
        parts = (ledger.queued, ledger.backoff, ledger.running, ledger.outbox, ledger.delivered)
        assert min(parts) >= 0, ledger
        held = self.slots.numbers()["held"]
        # What has ended gives its permit back at once, and is counted when its outcome is made.
        ended = len(self.runner._kernel._freed)
        assert held == ledger.running - ended, f"{held} permits are held, {ended} ended, {ledger}"
        if self.trainer is not None:
            numbers = self.trainer.gate.numbers()
            window = numbers["window"]
            assert window == (self.trainer.staleness + 1) * self.trainer.batch
            assert (numbers["outstanding"] or 0) <= window, numbers

    def check_bodies(self) -> None:
        """See that no more code runs than permits are held, but for what was given up."""
        zombies = self.runner.health().zombies
        assert self.bodies <= self.runner.ledger().running + zombies

    def take(self, outcomes: list[Outcome]) -> None:
        """Note outcomes that were handed over."""
        for outcome in outcomes:
            self.given[outcome.id] += 1
            assert self.given[outcome.id] <= self.submitted[outcome.id], f"doubled: {outcome}"
            assert outcome.delivered_ns is not None
            self._check_times(outcome)
            self.ended[f"{outcome.status}/{outcome.reason}"] += 1
            if self.trainer is not None and self.trainer.counts(outcome):
                self.trainer.buffer.append(outcome)

    def _check_times(self, outcome: Outcome) -> None:
        times = [
            outcome.submitted_ns,
            outcome.admitted_ns,
            outcome.started_ns,
            outcome.finished_ns,
            outcome.delivered_ns,
        ]
        known = [at_ns for at_ns in times if at_ns is not None]
        assert known == sorted(known), outcome
        if outcome.is_ok:
            assert len(known) == 5
            assert outcome.reason is Reason.ACCEPTED

    # --- tasks -----------------------------------------------------------------------------------

    def pick_call(self) -> tuple[str, Callable[..., Any], tuple[Any, ...]]:
        """Choose what a task does."""
        rng = self.rng
        (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
        if kind == "bad_call":
            return kind, self._run, ()
        if kind == "plain":
            return kind, _plain, (3,)
        return kind, self._run, (kind, rng.choice((0.0, 0.01, 0.5, 2.0, 10.0)), rng.random())

    async def _run(self, kind: str, lasts_s: float, share: float) -> Any:
        self.bodies += 1
        try:
            return await getattr(self, f"_{kind}")(lasts_s, share)
        finally:
            self.bodies -= 1

    async def _ok(self, lasts_s: float, share: float) -> float:
        await asyncio.sleep(lasts_s)
        return share

    async def _instant(self, lasts_s: float, share: float) -> float:
        return share

    async def _none(self, lasts_s: float, share: float) -> None:
        await asyncio.sleep(lasts_s)

    async def _rejected(self, lasts_s: float, share: float) -> Verdict:
        await asyncio.sleep(lasts_s)
        return Verdict(Status.REJECTED, Reason.FILTERED)

    async def _failing(self, lasts_s: float, share: float) -> None:
        await asyncio.sleep(lasts_s * share)
        raise ValueError("failing")

    async def _flaky(self, lasts_s: float, share: float) -> int:
        await asyncio.sleep(lasts_s * share)
        ctx.checkpoint(ctx.attempt)
        if (ctx.attempt or 0) < 3:
            raise OSError("flaky")
        return 3

    async def _self_cancelling(self, lasts_s: float, share: float) -> None:
        await asyncio.sleep(lasts_s * share)
        raise asyncio.CancelledError

    async def _exiting(self, lasts_s: float, share: float) -> None:
        await asyncio.sleep(lasts_s)
        raise SystemExit(3) if share < 0.5 else KeyboardInterrupt

    async def _never(self, lasts_s: float, share: float) -> None:
        await asyncio.Event().wait()

    async def _swallowing(self, lasts_s: float, share: float) -> str:
        """Go on for some time after a cancel, perhaps longer than there is for cleaning up."""
        until = self.loop.time() + lasts_s
        while (left_s := until - self.loop.time()) > 0:
            try:
                await asyncio.sleep(left_s)
            except asyncio.CancelledError:
                continue
        return "went on"

    async def _slow_cleanup(self, lasts_s: float, share: float) -> None:
        async def abort() -> None:
            await asyncio.sleep(lasts_s * share)
            if share < 0.1:
                raise OSError("the server does not answer")

        ctx.on_cancel(abort)
        try:
            await asyncio.sleep(20)
        finally:
            await asyncio.sleep(lasts_s)

    async def _children(self, lasts_s: float, share: float) -> None:
        async def clean_up() -> None:
            try:
                await asyncio.sleep(50)
            finally:
                await asyncio.sleep(share)

        left = [asyncio.ensure_future(clean_up()) for _ in range(2)]
        await asyncio.sleep(lasts_s)
        if share < 0.5:
            raise ValueError(f"left {len(left)} children")

    async def _stuck_children(self, lasts_s: float, share: float) -> None:
        left = asyncio.ensure_future(self._swallowing(20.0, share))
        await asyncio.sleep(lasts_s)
        if share < 0.7:
            raise ValueError(f"left {left}")

    async def _submitting(self, lasts_s: float, share: float) -> None:
        self.submit("ok" if share < 0.5 else "failing", tier="train")
        await asyncio.sleep(0)
        if share < 0.3:
            raise ValueError("left what it submitted")
        await asyncio.sleep(lasts_s)

    async def _pausing(self, lasts_s: float, share: float) -> int:
        for number in range(3):
            await asyncio.sleep(lasts_s / 3)
            ctx.checkpoint(number)
            await ctx.pause_point()
            ctx.progress()
        return 3

    def submit(self, kind: str | None = None, **options: Any) -> None:
        """Submit a task of some kind; what is refused is not counted."""
        name, fn, args = self.pick_call()
        if kind is not None:
            name, fn, args = kind, self._run, (kind, 0.5, self.rng.random())
        try:
            handle = self.runner.options(tags={"kind": name}, **options).submit(fn, *args)
        except RuntimeError:  # full, or closed
            return
        self.submitted[handle.id] += 1


def _plain(number: int) -> int:
    return number


def operations_to_run(default: int) -> int:
    """Say how long to fuzz; a long run is asked for by `RUNNER_FUZZ_OPERATIONS`."""
    return int(os.environ.get("RUNNER_FUZZ_OPERATIONS", default))
