"""`rollscope demo`: a small training that really learns, with the page live on it."""

import math
import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.analysis.wording import say_count, say_seconds
from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import check_extra
from rollscope.cli.tour import show_around, tell_of_report, write_report
from rollscope.config import resolve
from rollscope.demo.faults import Fault
from rollscope.instrument import default

if TYPE_CHECKING:
    from rollscope.demo.page import Page
    from rollscope.demo.training import StepDone

__all__ = ["DemoCommand"]

_BAR: Final = 24


class DemoCommand:
    """Trains a tiny policy with everything that a large one has, and shows where the time went."""

    name = "demo"
    summary = "train a tiny policy for real and watch it on the page"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dir", default="runs", help="where to put the run (default: runs)")
        parser.add_argument("--steps", type=_positive, default=80, help="steps (default: 80)")
        parser.add_argument("--seed", type=int, default=7, help="makes runs differ (default: 7)")
        parser.add_argument(
            "--fault",
            choices=[fault.value for fault in Fault],
            help="what goes wrong, for you to find",
        )
        parser.add_argument("--port", type=int, help="where the page is (default: 7077 if free)")
        parser.add_argument("--open", action="store_true", help="open the page in a browser")
        parser.add_argument(
            "--exit",
            action="store_true",
            help="end with the training; the page stays otherwise, if there is a terminal",
        )
        add_examples(parser, "example: rollscope demo --fault slow-reward")

    def run(self, args: Namespace) -> int:
        """Train, tell of every step, and sum up."""
        check_extra("starlette", "uvicorn", "aiohttp", extra="demo")
        from rollscope.demo.page import Page

        name = time.strftime("demo-%Y%m%d-%H%M%S")
        run = Path(args.dir, name)
        if not resolve({}, os.environ).enabled:
            print(f"Training for {args.steps} steps; ROLLSCOPE=off, so nothing is recorded.")
            return _train(args, run, None)
        run.parent.mkdir(parents=True, exist_ok=True)
        print("Starting the page.", flush=True)
        page = Page(run.parent, args.port)
        try:
            page.wait_ready()
            _announce(args, page.address_of(name))
            code = _train(args, run, page)
            stays = not args.exit and sys.stdin.isatty() and sys.stdout.isatty()
            if code == 0:
                tell_of_report(run)
            if stays and code == 0:
                _wait(page, name)
        finally:
            page.close()
        return code


def _announce(args: Namespace, address: str) -> None:
    print(f"Training for {args.steps} steps, live at {address}", flush=True)
    if args.open:
        import webbrowser

        webbrowser.open(address)


def _train(args: Namespace, run: Path, page: "Page | None") -> int:
    """Train; without a page nothing is recorded, and so there is nothing to show."""
    from rollscope.demo.running import run_demo

    default.init(
        run=run.name, dir=run.parent, role="trainer", rank=0, stack_after_s=0.5, payloads=True
    )
    fault = None if args.fault is None else Fault(args.fault)
    done: list[StepDone] = []
    try:
        for one in run_demo(run, steps=args.steps, seed=args.seed, fault=fault, page=page):
            done.append(one)
            print(_line(one), flush=True)
            if len(done) == args.steps:
                default.flush()
                _sum_up(done)
                if page is not None:
                    show_around(run)  # from the files alone, while it is still being written
    except KeyboardInterrupt:
        stay = f", which stay in {run}" if page is not None else ""
        print(f"\nStopped after {len(done)} of {args.steps} steps{stay}.")
        return 130
    finally:
        default.shutdown()
    if page is not None:
        write_report(run, args.steps)
    return 0


def _line(done: "StepDone") -> str:
    filled = round(done.update.reward * _BAR)
    bar = "#" * filled + "." * (_BAR - filled)
    took, oldest = say_seconds(done.took_s), say_count(done.staleness, "version")
    return (
        f"  step {done.step:3}  reward {done.update.reward:.3f} {bar}  "
        f"{done.sessions} sessions in {took:>6}, {oldest} old at most"
    )


def _sum_up(done: "list[StepDone]") -> None:
    few = max(1, min(5, len(done) // 4))
    first = math.fsum(one.update.reward for one in done[:few]) / few
    last = math.fsum(one.update.reward for one in done[-few:]) / few
    sessions = sum(one.sessions for one in done)
    took_s = math.fsum(one.took_s for one in done)
    print(
        f"\nMean reward went from {first:.3f} to {last:.3f} in {say_seconds(took_s)}: "
        f"{sessions:,} sessions, {sessions / took_s:.0f} a second."
    )


def _wait(page: "Page", run: str) -> None:
    print(f"\nThe page stays at {page.address_of(run)} until Ctrl+C.")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 100_000:
        raise ArgumentTypeError(f"{text!r} is no number of steps")
    return int(text)
