"""`python -m rollscope.integrations.xtuner viewer|hotspots DIR`: the commands of old."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.errors import CommandError, RollscopeError

if TYPE_CHECKING:
    from rollscope.importing.accounts import Report
    from rollscope.store.embedded import RunStore

__all__ = ["main"]

_NEWEST: Final = ("latest-produce-batch", "latest")
_TABLE: Final = """
    SELECT name, count(*) AS count,
        sum(CASE WHEN status IN ('open', 'lost') THEN 1 ELSE 0 END) AS open,
        sum(CASE WHEN status = 'error' THEN 1 ELSE 0 END) AS errors,
        sum(duration_ns) / 1e9 AS total, avg(duration_ns) / 1e9 AS avg,
        quantile_cont(duration_ns, 0.5) / 1e9 AS p50,
        quantile_cont(duration_ns, 0.95) / 1e9 AS p95, max(duration_ns) / 1e9 AS max
    FROM spans
    WHERE (kind IN ('phase', 'span') OR kind = 'session' AND name <> 'session')
        AND ($step < 0 OR step = $step)
    GROUP BY name ORDER BY p95 DESC NULLS LAST, name"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command."""
    args = _parser().parse_args(arguments)
    try:
        return _view(args) if args.command == "viewer" else _hotspots(args)
    except RollscopeError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  (a command)
        return 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m rollscope.integrations.xtuner")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (
        ("viewer", "show traces, as a page or as a file"),
        ("hotspots", "say which stages take long"),
    ):
        command = commands.add_parser(name, help=summary)
        command.add_argument("place", nargs="?", type=Path, metavar="DIR")
        command.add_argument("--trace-jsonl", type=Path, metavar="FILE", help="instead of DIR")
        command.add_argument("-o", "--output", type=Path, metavar="FILE")
        command.add_argument(
            "--scope",
            "--train-step",
            default=_NEWEST[0],
            help="latest-produce-batch, latest, all, a step or a range (default: %(default)s)",
        )
        if name == "viewer":
            command.add_argument("--serve", action="store_true", help="serve the live page")
            command.add_argument("--host", default="127.0.0.1")
            command.add_argument("--port", type=int, default=0)
            command.add_argument("--refresh-interval", type=float, help="taken; the page is live")
            command.add_argument("--service", help="taken; every service is shown")
            command.add_argument("--run-id", help="the run, where DIR holds several")
    return parser


def _place(args: Namespace) -> Path:
    place: Path | None = args.trace_jsonl or args.place
    if place is None or not place.exists():
        raise CommandError(f"there is nothing at {place}; give the folder of the traces", 2)
    return place


@contextmanager
def _run_of(place: Path, wanted: str | None = None) -> Iterator[Path]:
    """Find the run that Rollscope has written there, or make one of the files, for a while."""
    from rollscope.importing.running import import_run
    from rollscope.store.run import list_runs

    names = list_runs(place) if place.is_dir() else []
    if place.is_dir() and place.name in list_runs(place.parent):
        yield place
    elif names:
        yield _chosen(place, wanted)
    else:
        with tempfile.TemporaryDirectory(prefix="rollscope-xtuner-") as folder:
            run = Path(folder, wanted or "imported")
            report = import_run([place], run)
            if not any(file.imported for file in report.files):
                raise CommandError(f"no traces of XTuner are at {place}", 1)
            _tell_left_out(report)
            yield run


def _tell_left_out(report: Report) -> None:
    for file in report.files:
        for why, left in file.set_aside.items():
            lines = ", ".join(map(str, left.lines))
            print(f"{file.path}: {left.count} left out, {why}: line {lines}", file=sys.stderr)  # noqa: T201


def _chosen(folder: Path, wanted: str | None) -> Path:
    """Give the run of a folder that is wanted, else the newest."""
    from rollscope.store.run import list_runs

    names = list_runs(folder)
    if wanted is not None and wanted not in names:
        raise CommandError(f"there is no run {wanted}; there are: {', '.join(names)}", 2)
    return folder / (wanted or names[-1])


def _newest_step(store: RunStore) -> int | None:
    found: int | None = store.query("SELECT max(step) AS step FROM spans WHERE kind = 'session'")[
        "step"
    ][0].as_py()
    return found


def _write(run: Path, output: Path, scope: str, *, with_table: bool) -> None:
    from rollscope.opening import open as open_run
    from rollscope.reports import ReportChoices, write_report

    with open_run(run) as opened:
        step = _newest_step(opened.store)
        chosen = scope
        if scope in _NEWEST:
            chosen = "all" if step is None else str(step)
        written = write_report(opened.store, output, ReportChoices(scope=chosen, ids=True))
        if with_table:
            _print_table(opened.store, int(chosen) if chosen.isdigit() else None)
    print(written.path)  # noqa: T201


def _print_table(store: RunStore, step: int | None) -> None:
    columns = ("count", "open", "errors", "total", "avg", "p50", "p95", "max")
    print(f"{'stage':40}" + "".join(f"{name:>9}" for name in columns))  # noqa: T201
    for row in store.query(_TABLE, step=-1 if step is None else step).to_pylist():
        shown = [row[name] for name in columns]
        cells = [f"{0.0 if item is None else item:9.3f}" for item in shown[3:]]
        counts = [f"{item:9d}" for item in map(int, shown[:3])]
        name = "".join(char if char.isprintable() else "?" for char in row["name"])
        print(f"{name[:40]:40}" + "".join(counts + cells))  # noqa: T201


def _hotspots(args: Namespace) -> int:
    place = _place(args)
    folder = place if place.is_dir() else place.parent
    output = args.output or folder / "producer_trace_hotspots.html"
    with _run_of(place) as run:
        _write(run, output, args.scope, with_table=True)
    return 0


def _view(args: Namespace) -> int:
    place = _place(args)
    with _run_of(place, args.run_id) as run:
        if not args.serve:
            folder = place if place.is_dir() else place.parent
            output = args.output or folder / "producer_trace.html"
            _write(run, output, args.scope, with_table=False)
            return 0
        where = ["--host", args.host, "--port", str(args.port)]
        command = [sys.executable, "-m", "rollscope", "view", str(run), *where]
        try:
            return subprocess.call(command)  # noqa: S603  (our own program)
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
