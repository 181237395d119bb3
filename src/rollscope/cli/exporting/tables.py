"""`rollscope export --format parquet` and `--format csv`: a run as tables, one file each."""

import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rollscope.cli.exporting.places import TO_OUTPUT, chosen_place, chosen_steps, tell_made
from rollscope.cli.reading import check_extra, open_run
from rollscope.errors import CommandError

__all__ = ["CsvFormat", "ParquetFormat"]

_PIECE_BYTES: Final = 1 << 20


class ParquetFormat:
    """Writes Parquet files."""

    name = "parquet"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare what both formats of tables take."""
        group = parser.add_argument_group("as Parquet or CSV")
        group.add_argument(
            "--tables",
            metavar="NAMES",
            help="only these, with commas between: sessions, phases, spans, events, lanes, steps, "
            "metrics (default: all, in a folder)",
        )

    def run(self, args: Namespace) -> int:
        """Write the files and say what is in them."""
        return _export(args, ".parquet")


class CsvFormat:
    """Writes CSV files."""

    name = "csv"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the options of this format."""
        group = parser.add_argument_group("as CSV")
        group.add_argument(
            "--spreadsheet-safe",
            action="store_true",
            help="put ' before text that a spreadsheet would take for a formula",
        )

    def run(self, args: Namespace) -> int:
        """Write the files and say what is in them."""
        return _export(args, ".csv")


def _export(args: Namespace, ending: str) -> int:
    check_extra()
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.exporting.output import open_output
    from rollscope.exporting.scratch import Scratch
    from rollscope.exporting.tables import TABLES, check_tables
    from rollscope.exporting.tables_writing import write_table

    names = check_tables(args.tables.split(",")) if args.tables is not None else list(TABLES)
    if args.output == TO_OUTPUT and (ending != ".csv" or len(names) != 1):
        raise CommandError("-o - goes with --format csv and one of --tables; say -o FOLDER", 2)
    began, made = time.monotonic(), {}
    with open_run(args) as store, ExitStack() as aside:
        place = _place(args, store.path, names, ending)
        # The database writes to files only, so what goes to the output stands in one first.
        shown = place or Path(aside.enter_context(TemporaryDirectory()), f"{names[0]}{ending}")
        files = _files(shown, names, ending)
        steps = chosen_steps(args, store)
        with bar_of("Exporting", are_bytes=False) as progress:
            for done, (name, path) in enumerate(files.items()):
                if progress is not None:
                    progress(done, len(files))
                with Scratch(store, threads=args.threads) as scratch:
                    made[name] = write_table(
                        name,
                        path,
                        scratch,
                        store,
                        steps=steps,
                        as_csv=ending == ".csv",
                        is_spreadsheet_safe=args.spreadsheet_safe,
                    )
        if place is None:
            with shown.open("rb") as file, open_output(None) as sink:
                while piece := file.read(_PIECE_BYTES):
                    sink.write(piece)
            return 0
        made["bytes"] = sum(path.stat().st_size for path in files.values())
    tell_made(args, place, made, time.monotonic() - began)
    return 0


def _place(args: Namespace, run: Path, names: list[str], ending: str) -> Path | None:
    """One table is a file, several are a folder of files."""
    is_one = args.tables is not None and len(names) == 1
    place = chosen_place(args, run, f".{names[0]}{ending}" if is_one else f"-{ending[1:]}")
    if place is None or is_one:
        return place
    if place.exists() and not place.is_dir():
        raise CommandError(f"{place} is no folder, and several tables are to be written")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _files(place: Path, names: list[str], ending: str) -> dict[str, Path]:
    if place.is_dir():
        return {name: place / f"{name}{ending}" for name in names}
    return {names[0]: place}
