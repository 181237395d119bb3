"""Writers that record over a network while their server is killed and the link is cut.

    python -m tests.chaos.collection --seconds 120 --writers 8 --rate 5000 --kills 10 --cuts 2

Prints a table of what was found and what is allowed; the exit code is 1 if anything was missed.
`--link namespace` needs root: writers get a network namespace of their own, and the interface
between is taken down. `--link proxy` goes through a proxy that stops passing bytes instead.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tests.chaos.checking import Found, compare
from tests.chaos.judging import Row, judge, print_rows
from tests.chaos.links import make_link
from tests.chaos.sampling import Sampler, spooled_bytes
from tests.chaos.serving import TOKEN, Looker, Server, host_environment
from tests.chaos.writer import Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.links import Link

__all__ = ["Plan", "Result", "run_plan"]

_ROOT: Final = Path(__file__).parents[2]
_RUN: Final = "chaos"
_BESIDE: Final = 1000
"""Number of the writer that records into files."""
_FLOOR: Final = 1001
"""Number of the one that records nothing."""
_PATIENCE_S: Final = 120.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to whom."""

    seconds: float = 120.0
    """For which the server is under fire; a quiet stretch follows."""
    writers: int = 8
    rate: int = 5000
    """Spans a second of each writer."""
    kills: int = 10
    cuts: int = 2
    cut_s: float = 5.0
    down_s: tuple[float, float] = (0.2, 2.0)
    """How long the server stays away, at least and at most."""
    quiet_s: float = 8.0
    link: str = "auto"
    spool_mb: int = 256
    seed: int = 0


class Result(msgspec.Struct, kw_only=True):
    """What came of it."""

    plan: Plan
    written: list[Written]
    beside: Written
    """A writer of the same kind that records into files, for comparison."""
    floor: Written
    """A program of the same kind that records nothing, for comparison."""
    found: Found
    spool_peak_mb: float
    spool_left_bytes: int
    peak_mb: dict[str, float]
    """By role."""
    visible_s: float
    """From the end of the writers until the page had every span."""
    answers: int
    faults: list[str]
    server_exit: int
    server_said: str
    writers_said: str


def run_plan(plan: Plan, folder: Path) -> Result:
    """Let it happen, then look at what is there."""
    spools = folder / "spools"
    with ExitStack() as stack:
        link = make_link(plan.link)
        stack.callback(link.close)
        server = Server(folder, link)
        stack.callback(server.kill)
        server.start()
        server.wait_until_up()
        looker = Looker(server, _RUN)
        stack.callback(looker.close)
        writers = [_start_writer(plan, link, folder, number) for number in range(plan.writers)]
        others = [_start_writer(plan, link, folder, number) for number in (_BESIDE, _FLOOR)]
        for writer in (*writers, *others):
            stack.callback(_end_writer, writer)
        sampler = Sampler(spools, lambda: _pids(server, writers))
        stack.callback(sampler.close)
        _follow(_events(plan, server, link))
        server.wait_until_up()
        time.sleep(plan.quiet_s)
        *written, beside, floor = _finish([*writers, *others])
        ended_s = time.monotonic()
        total = sum(each.spans for each in written)
        visible_s = _wait_until_visible(looker, total) - ended_s
        looker.close()
        sampler.close()
        exit_code = server.stop()
    return Result(
        plan=plan,
        written=written,
        beside=beside,
        floor=floor,
        found=compare(
            server.runs / _RUN, [folder / f"ids-{number}" for number in range(plan.writers)]
        ),
        spool_peak_mb=sampler.peak_spool_bytes / 2**20,
        spool_left_bytes=spooled_bytes(spools),
        peak_mb=sampler.peak_mb,
        visible_s=visible_s,
        answers=looker.answers,
        faults=looker.faults,
        server_exit=exit_code,
        server_said=server.log.read_text(),
        writers_said="".join(path.read_text() for path in sorted(folder.glob("writer-*.log"))),
    )


def _start_writer(plan: Plan, link: Link, folder: Path, number: int) -> subprocess.Popen[bytes]:
    command = [*link.prefix, sys.executable, "-m", "tests.chaos.writer"]
    command += ["--out", str(folder / f"ids-{number}")]
    command += ["--rate", str(plan.rate), "--number", str(number)]
    command += ["--floor"] if number == _FLOOR else []
    env = host_environment(
        ROLLSCOPE_RUN=_RUN,
        ROLLSCOPE_DIR=str(folder / "beside"),
        ROLLSCOPE_SINK="file" if number == _BESIDE else link.address,
        ROLLSCOPE_TOKEN=TOKEN,
        ROLLSCOPE_SPOOL_DIR=str(folder / "spools"),
        ROLLSCOPE_SPOOL_MB=str(plan.spool_mb),
    )
    with (folder / f"writer-{number}.log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, cwd=_ROOT
        )


def _finish(writers: list[subprocess.Popen[bytes]]) -> list[Written]:
    """Tell writers to end, all at once, and hear what they recorded."""
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
        writer.stdin = None  # or it would be flushed again
    said = [writer.communicate(timeout=_PATIENCE_S)[0] for writer in writers]
    return [msgspec.json.decode(each, type=Written) for each in said]


def _end_writer(writer: subprocess.Popen[bytes]) -> None:
    if writer.poll() is None:
        writer.kill()
        writer.communicate()


def _pids(server: Server, writers: list[subprocess.Popen[bytes]]) -> dict[int, str]:
    pids = {writer.pid: "writer" for writer in writers}
    if server.process is not None:
        pids[server.process.pid] = "server"
    return pids


def _events(plan: Plan, server: Server, link: Link) -> list[tuple[float, Callable[[], None]]]:
    """Spread what happens over the time there is; kills fall into cuts as well."""
    dice = random.Random(plan.seed)
    events: list[tuple[float, Callable[[], None]]] = []

    def kill() -> None:
        server.wait_until_up()  # or there would be nothing to kill
        server.kill()

    for number in range(plan.kills):
        every_s = plan.seconds / plan.kills
        down_s = min(dice.uniform(*plan.down_s), every_s / 2)
        at_s = number * every_s + dice.uniform(0.2, 0.5) * every_s
        events += [(at_s, kill), (at_s + down_s, server.start)]
    for number in range(plan.cuts):
        every_s = plan.seconds / plan.cuts
        at_s = number * every_s + dice.uniform(0.2, 0.5) * every_s
        events += [(at_s, link.cut), (at_s + min(plan.cut_s, every_s / 2), link.mend)]
    return sorted(events, key=lambda event: event[0])


def _follow(events: list[tuple[float, Callable[[], None]]]) -> None:
    began_s = time.monotonic()
    for at_s, happen in events:
        time.sleep(max(began_s + at_s - time.monotonic(), 0.0))
        happen()


def _wait_until_visible(looker: Looker, spans: int) -> float:
    """Wait until the page knows as many spans; gives when, or some day if it never does."""
    ends_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends_at:
        overview = looker.overview()
        if overview is not None and overview["spans"] >= spans:
            return time.monotonic()
        time.sleep(0.1)
    return float("inf")


def main() -> int:
    """Run at full size and print what was found."""
    parser = argparse.ArgumentParser(description="Record while the server is killed.")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--rate", type=int, default=5000, help="spans a second of each writer")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=2)
    parser.add_argument("--link", choices=("auto", "namespace", "proxy"), default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    options = vars(parser.parse_args())
    is_json = options.pop("json")
    with tempfile.TemporaryDirectory(prefix="rollscope-chaos-") as folder:
        result = run_plan(Plan(**options), Path(folder))
    rows: list[Row] = judge(result)
    print_rows(rows)
    if is_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
