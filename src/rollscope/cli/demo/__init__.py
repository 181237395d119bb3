"""`rollscope demo`: a simulated rollout run, recorded for real and read back."""

import asyncio
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rollscope.cli.demo.tour import show_around
from rollscope.cli.demo.trainer import Trainer
from rollscope.instrument import default

__all__ = ["DemoCommand"]


class DemoCommand:
    """Records a small run and shows where its time went."""

    name = "demo"
    summary = "record a simulated rollout run and show where its time went"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dir", default="runs", help="where to put the run (default: runs)")
        parser.add_argument("--steps", type=int, default=3, help="trainer steps (default: 3)")
        parser.add_argument("--seed", type=int, default=7, help="makes runs differ (default: 7)")

    def run(self, args: Namespace) -> int:
        """Record the run, read it back while it is still open, and end it."""
        name = time.strftime("demo-%Y%m%d-%H%M%S")
        print(f"Recording a simulated run of {args.steps} steps; this takes a few seconds.")
        sys.stdout.flush()
        default.init(
            run=name, dir=args.dir, role="trainer", rank=0, stack_after_s=0.5, payloads=True
        )
        try:
            asyncio.run(_record(args.steps, args.seed, Path(args.dir, name)))
        finally:
            default.shutdown()
        return 0


async def _record(steps: int, seed: int, run: Path) -> None:
    trainer = Trainer(seed)
    try:
        await trainer.train(steps)
        await asyncio.to_thread(default.flush)
        # What follows comes from the files alone, as it would from another machine.
        await asyncio.to_thread(show_around, run)
    finally:
        await trainer.stop()
