"""What all commands that read a run have in common: their arguments, and opening the run."""

import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final

from rollscope.errors import CommandError, MissingExtra, NotARunError
from rollscope.store.run import find_run, list_runs, read_run_file

if TYPE_CHECKING:
    from rollscope.screens.hints import Hints
    from rollscope.store.clickhouse.store import ClickHouseStore
    from rollscope.store.embedded import RunStore

__all__ = [
    "add_place_arguments",
    "add_reading_arguments",
    "add_shared_arguments",
    "check_extra",
    "chosen_run",
    "hints_of",
    "open_run",
    "open_source",
    "own_command",
    "print_problems",
    "runs_by_age",
    "started_ns",
]

_ADDRESSES: Final = ("clickhouse://", "clickhouses://")
_EXTRA: Final = ("duckdb", "numpy", "pyarrow", "rich")


def add_reading_arguments(parser: ArgumentParser) -> None:
    """Declare what every reading command takes."""
    parser.add_argument(
        "run",
        nargs="?",
        help="a run directory, a run's name, or clickhouse://[USER@]HOST[:PORT]/DATABASE/RUN "
        "(default: the newest run in --dir)",
    )
    add_shared_arguments(parser)


def add_shared_arguments(parser: ArgumentParser) -> None:
    """Declare what every reading command takes, whatever it reads."""
    add_place_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def add_place_arguments(parser: ArgumentParser) -> None:
    """Declare where runs are, and what reading them may take."""
    parser.add_argument("--dir", default="runs", help="where named runs are (default: runs)")
    parser.add_argument("--threads", type=_count, help="threads to use (default: all cores)")


def _count(text: str) -> int:
    """Read a number of things; argparse makes a message of the error."""
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"{text} is not 1 or more")
    return number


def check_extra(*more: str, extra: str = "server") -> None:
    """See that what reading needs is installed.

    Args:
        *more: What else is needed.
        extra: The set of dependencies that brings all of it.

    Raises:
        MissingExtra: It is not; the message says how to install it.
    """
    missing = [name for name in (*_EXTRA, *more) if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"this command needs {', '.join(missing)}; "
            f"install with: pip install 'rollscope[{extra}]'"
        )


def chosen_run(args: Namespace) -> Path:
    """Find the run that was asked for, or the newest one.

    Raises:
        NotARunError: There is no such run.
        CommandError: There is no run at all.
    """
    if args.run is not None:
        try:
            return find_run(args.run, args.dir)
        except NotARunError as error:
            raise _told_of_import(error, Path(args.run)) from None
    runs = runs_by_age(Path(args.dir))
    if not runs:
        raise CommandError(
            f"there are no runs in {args.dir}; give a run's path, or with --dir the directory that "
            "holds your runs (`rollscope demo` records a small one)"
        )
    return runs[-1]


def _told_of_import(error: NotARunError, place: Path) -> NotARunError:
    """Say how to read what another tool has written, if that is what it is."""
    if not place.exists():
        return error
    from rollscope.cli.importing import count_foreign

    if not count_foreign(place):
        return error
    return NotARunError(
        f"{place} was written by another tool; make a run of it with `rollscope import {place}`, "
        f"or look at it with `rollscope view {place}`"
    )


def runs_by_age(directory: Path) -> list[Path]:
    """Give the runs of a directory by when they were begun, the newest last."""
    runs = [directory / name for name in list_runs(directory)]
    return sorted(runs, key=lambda run: (started_ns(run), run.name))


def started_ns(run: Path) -> int:
    """Say when a run was begun; by its directory's age where it does not say itself."""
    file = read_run_file(run)
    return run.stat().st_mtime_ns if file is None else file.created_ns


@contextmanager
def open_run(args: Namespace, *, tell: bool = True) -> "Iterator[RunStore]":
    """Open the run that was asked for, with a bar if it takes long.

    Args:
        args: What was given on the command line.
        tell: Print to the error stream which run was chosen and what is wrong with its files.

    Raises:
        RollscopeError: There is no such run, or a part of Rollscope is not installed.
    """
    check_extra()
    run = chosen_run(args)
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.store.embedded import RunStore

    if args.run is None and tell:
        print_problems([f"the newest run is {run}"])
    with bar_of("Reading the logs") as progress:
        store = RunStore(run, threads=args.threads, progress=progress)
    with store:
        if tell:
            print_problems(store.problems)
        yield store


@contextmanager
def open_source(args: Namespace) -> "Iterator[RunStore | ClickHouseStore]":
    """Open what was asked for: the files of a run, or a run in ClickHouse by its address.

    Raises:
        RollscopeError: There is no such run, or it cannot be reached.
    """
    if args.run is None or not args.run.startswith(_ADDRESSES):
        with open_run(args) as store:
            yield store
        return
    check_extra()
    from rollscope.store.clickhouse.address import open_address

    yield open_address(args.run)


def hints_of(args: Namespace, store: "RunStore | ClickHouseStore") -> "Hints":
    """Say how the reader calls the program and the run, for commands to type next."""
    from rollscope.screens.hints import Hints

    path = getattr(store, "path", None)  # an address has none
    return Hints(run=args.run if path is None else str(path), command=own_command())


def own_command() -> str:
    """Write how this program is called: the environment of `make demo` is not on the path."""
    if which("rollscope"):
        return "rollscope"
    called = Path(sys.argv[0])
    is_script = called.is_file() and called.suffix != ".py"
    return shlex.quote(sys.argv[0]) if is_script else "python -m rollscope"


def print_problems(problems: Iterable[str]) -> None:
    """Tell what is wrong with the files of a run."""
    from rollscope.screens.tables import Screen, clean

    screen = Screen.of(sys.stderr)
    for problem in problems:
        print(screen.fit(f"rollscope: {clean(problem)}"), file=sys.stderr)
