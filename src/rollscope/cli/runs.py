"""`rollscope runs`: the runs of a directory."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.cli.reading import (
    add_shared_arguments,
    check_extra,
    print_problems,
    runs_by_age,
    started_ns,
)
from rollscope.errors import CommandError, RollscopeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.store.sealer import Progress

__all__ = ["RunList", "RunRow", "RunsCommand"]

_READ_BYTES: Final = 64_000_000
"""How much of logs that nobody has read yet is read to count what is in them, the newest runs
first: a few seconds' worth."""


class RunRow(msgspec.Struct, kw_only=True):
    """One run of a directory."""

    name: str
    path: str
    started_ns: int
    state: str
    """`live`: a process may still write; `ended` or `dead`: none may, and the last one to write
    closed its log or died; `imported`: files of another tool tell of it; `empty`: nothing was
    recorded; `broken`: it cannot be read."""
    processes: int = 0
    alive: int = 0
    size_bytes: int = 0
    last_activity_ns: int = 0
    steps: int | None = None
    """None where counting would take too long; so are the next two."""
    sessions: int | None = None
    spans: int | None = None
    problem: str = ""


class RunList(msgspec.Struct, kw_only=True):
    """The runs of a directory."""

    directory: str
    runs: list[RunRow]
    uncounted_bytes: int = 0
    """Logs of runs that were not counted."""


class RunsCommand:
    """Lists runs."""

    name = "runs"
    summary = "list the runs of a directory"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("directory", nargs="?", help="where to look (default: --dir)")
        add_shared_arguments(parser)
        parser.add_argument(
            "--all", action="store_true", help="count in every run, however long that takes"
        )

    def run(self, args: Namespace) -> int:
        """Print the runs, the newest last."""
        check_extra()
        directory = Path(args.directory or args.dir)
        if not directory.is_dir():
            raise CommandError(
                f"there is no directory {directory}; give the one that holds your runs (programs "
                "write to ./runs, or to ROLLSCOPE_DIR)"
            )
        from rollscope.cli.terminal.output import print_json

        found = _look(directory, None if args.all else _READ_BYTES, args.threads)
        if args.json:
            print_json(found)
        elif found.runs:
            _show(found)
        else:
            _show_none(directory)
        print_problems(f"{row.path}: {row.problem}" for row in found.runs if row.problem)
        return 0


def _look(directory: Path, budget: int | None, threads: int | None) -> RunList:
    from rollscope.cli.terminal.progress import bar_of

    found = RunList(directory=str(directory), runs=[])
    with bar_of("Reading new logs") as progress:
        for run in reversed(runs_by_age(directory)):
            try:
                row, unread = _describe(run, budget, threads, progress)
            except (RollscopeError, OSError) as error:
                row, unread = _broken(run, error), 0
            if row.spans is None:
                found.uncounted_bytes += unread
            elif budget is not None:
                budget -= unread
            found.runs.insert(0, row)
    return found


def _describe(
    run: Path, budget: int | None, threads: int | None, progress: "Progress | None"
) -> tuple[RunRow, int]:
    """Say what is known of a run, and how much of its logs had not been read before."""
    from rollscope.store.sealer import Sealer, find_shelf
    from rollscope.store.upkeep.sizes import sizes_of

    sealer = Sealer(run, find_shelf(run))
    done, total = sealer.intake.total_bytes()
    row = RunRow(
        name=run.name,
        path=str(run),
        started_ns=started_ns(run),
        state="empty",
        size_bytes=sizes_of(sealer).total_bytes,
    )
    if budget is not None and total - done > budget:
        _peek(run, row)
    else:
        _count(run, row, threads, progress)
    return row, total - done


def _broken(run: Path, error: Exception) -> RunRow:
    try:
        began = started_ns(run)
    except OSError:
        began = 0
    return RunRow(
        name=run.name, path=str(run), started_ns=began, state="broken", problem=str(error)
    )


def _count(run: Path, row: RunRow, threads: int | None, progress: "Progress | None") -> None:
    from rollscope.store.embedded import RunStore

    with RunStore(run, threads=threads, progress=progress) as store:
        (kinds,) = store.query(
            "SELECT count(DISTINCT CASE WHEN kind = 'step' THEN step END) AS steps, "
            "count(*) FILTER (WHERE kind = 'session') AS sessions, count(*) AS spans FROM spans"
        ).to_pylist()
        statuses = store.query("SELECT status, last_seen_ns FROM processes").to_pylist()
        row.problem = "; ".join(store.problems)
    row.steps, row.sessions, row.spans = kinds["steps"], kinds["sessions"], kinds["spans"]
    _set_state(row, [(each["last_seen_ns"], each["status"]) for each in statuses])


def _peek(run: Path, row: RunRow) -> None:
    """Look at the first and the last frames of each log only."""
    from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
    from rollscope.store.glance import glance_at

    logs = sorted((run / LOG_DIR).glob(f"*{LOG_SUFFIX}"))
    seen = [glance_at(log, time.time_ns()) for log in logs]
    _set_state(row, [(at_ns, "dead" if how == "begun" else how) for at_ns, how in seen])


def _set_state(row: RunRow, processes: "Sequence[tuple[int, str]]") -> None:
    """Say how a run is from when each of its processes was last seen, and how it is."""
    row.processes = len(processes)
    row.alive = sum(status == "alive" for _, status in processes)
    if processes:
        row.last_activity_ns, last = max(processes)
        row.state = "live" if row.alive else last


def _show(found: RunList) -> None:
    from rollscope.screens.tables import (
        Column,
        Screen,
        say_age,
        say_size,
        say_time,
        show_table,
    )

    now_ns = time.time_ns()
    columns = (
        Column("run", can_shrink=True, least=20),
        Column("started", leaves=1),
        Column("state"),
        Column("alive", "right", leaves=5),
        Column("steps", "right", leaves=3),
        Column("sessions", "right", leaves=4),
        Column("spans", "right"),
        Column("size", "right", leaves=2),
        Column("idle", "right"),
    )
    rows = [
        (
            row.name,
            say_time(row.started_ns),
            row.state,
            "-" if row.state == "imported" else f"{row.alive}/{row.processes}",
            _number(row.steps),
            _number(row.sessions),
            _number(row.spans),
            say_size(row.size_bytes),
            say_age(row.last_activity_ns, now_ns),
        )
        for row in found.runs
    ]
    sys.stdout.write(show_table(columns, rows, Screen.of()))
    uncounted = sum(row.spans is None and row.state != "broken" for row in found.runs)
    if uncounted:
        print(
            f"Not counted: {uncounted} of {len(found.runs)} runs, whose logs "
            f"({say_size(found.uncounted_bytes)}) nobody has read yet; --all counts them."
        )


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _show_none(directory: Path) -> None:
    from rollscope.model.rundir import LOG_DIR

    if (directory / LOG_DIR).is_dir():
        print(
            f"{directory} is a run itself; `rollscope runs {directory.resolve().parent}` lists it."
        )
        return
    print(f"There are no runs in {directory}; `rollscope demo` records a small one.")
