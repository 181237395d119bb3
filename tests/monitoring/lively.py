"""A program that records a lively run: everything that metrics are derived from, quickly.

Run as `python lively.py`; settings come from the environment. Steps take about a second. It goes
on until its standard input ends; the line `collapse` makes it reject nearly all sessions from then.
"""

import asyncio
import sys
import threading
from typing import NoReturn

import rollscope as rs

SESSIONS = 8
BOUND = 2
"""How many versions behind the policy sessions may be; most of them are."""
SLOTS = SESSIONS


class Rollouts:
    """Sessions of each step: quick ones, one straggler, and one that never ends."""

    def __init__(self) -> None:
        self.has_collapsed = False
        self.is_over = False
        self._number = 0

    def listen(self) -> None:
        """Follow what the standard input says."""
        for line in sys.stdin:
            self.has_collapsed |= line.strip() == "collapse"
        self.is_over = True

    async def hang(self) -> None:
        """Never end, past a deadline."""
        async with rs.task("swe/0"), rs.session(sample=0, version=0, deadline_s=0.2):
            with rs.phase("toolcall", tool="browser"):
                await asyncio.Event().wait()

    async def run_step(self, step: int) -> None:
        """Roll out, train, publish."""
        with rs.step(step, version=step):
            with rs.state("rollout", lane="trainer_0"), rs.span("batch.wait", category="sync"):
                version = max(step - BOUND, 0)
                async with asyncio.TaskGroup() as group:
                    running = [
                        group.create_task(self._session(step, version, sample))
                        for sample in range(SESSIONS)
                    ]
            for one in running:
                if (ref := one.result()) is not None:
                    rs.annotate(ref, consumed_step=step)
            with rs.state("train", lane="trainer_0"), rs.span("trainer.update"):
                await asyncio.sleep(0.02)
        rs.event("weights.published", version=step + 1)
        with rs.state("gate:staleness", lane="rollout 0"):
            await asyncio.sleep(0.02)
        self._tell(step)

    async def _session(self, step: int, version: int, sample: int) -> rs.SpanRef | None:
        async with (
            rs.task(f"gsm8k/{step}", step=step),
            rs.session(
                sample=sample,
                version=version,
                replica="vllm-0",
                queue_wait_s=0.02,
                runner_wait_s=0.001,
                post_wait_s=0.003,
            ) as session,
        ):
            with rs.phase("queue"):
                await asyncio.sleep(0.001)
            with rs.phase("generate", model="policy", tokens_in=200, tokens_out=100):
                rs.payload("messages", "which cannot be redacted, and is dropped")
                # The last one is the tail of its step.
                await asyncio.sleep(0.8 if sample == SESSIONS - 1 else 0.04)
            with rs.phase("reward", function="judge"):
                await asyncio.sleep(0.002)
            self._judge(session, sample)
            return session.ref

    def _judge(self, session: rs.Session, sample: int) -> None:
        if self.has_collapsed and sample:
            session.finish("rejected", reason="parser", reward=0.0)
        elif sample == 1:
            session.finish("failed", reason="sandbox")
        elif sample == 2:
            session.finish("timeout")
        elif sample != 3:  # that one is left without a verdict
            session.finish("accepted", reward=0.5)

    def _tell(self, step: int) -> None:
        """Record metrics, some of which are refused."""
        rs.gauge("learning_rate", 1e-5)
        rs.count("batches", worker="t0")
        rs.observe("pack_seconds", 0.05 * (step % 3 + 1))
        rs.observe("event_loop_lag_seconds", 0.01)
        rs.gauge("slots", SLOTS, pool="rollout 0")
        rs.gauge("rollscope.staleness_bound", BOUND)
        rs.count("retries", session=str(step))
        rs.count("batches", -1)


def refuse(_name: str, _value: object) -> NoReturn:
    """Fail, as a redactor may, so that payloads are dropped."""
    raise ValueError("not fit to be kept")


async def main() -> None:
    """Record until told to stop."""
    rollouts = Rollouts()
    threading.Thread(target=rollouts.listen, daemon=True).start()
    hanging = asyncio.create_task(rollouts.hang())
    step = 0
    while not rollouts.is_over:
        await rollouts.run_step(step)
        step += 1
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)


if __name__ == "__main__":
    rs.init(role="rollout", rank=0, payloads=True, redact=refuse)
    asyncio.run(main())
    rs.shutdown()
