"""`rollscope compact`: a run in few files, and no more of it than is wanted."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.cli.reading import add_reading_arguments, check_extra, chosen_run, print_problems
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.store.sealer import Sealer
    from rollscope.store.upkeep.retention import Removal
    from rollscope.store.upkeep.sizes import Sizes

__all__ = ["CompactCommand", "Compaction"]

_DAY_NS: Final = 86_400_000_000_000
_GB: Final = 1_000_000_000


class Compaction(msgspec.Struct, kw_only=True):
    """What was done to a run, or would be done."""

    run: str
    before: "Sizes"
    after: "Sizes"
    merged_segments: int = 0
    """How many fewer there are because of merging."""
    is_dry_run: bool = False
    """Whether removals were only planned."""
    removed_segments: int = 0
    removed_spans: int = 0
    removed_bytes: int = 0
    dropped_logs: int = 0
    dropped_bytes: int = 0
    notes: list[str] = []


class CompactCommand:
    """Seals and merges; removes only when told twice."""

    name = "compact"
    summary = "seal a run's logs, merge small files, remove what is old"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument(
            "--keep-days", type=float, metavar="DAYS", help="remove what ended longer ago"
        )
        parser.add_argument(
            "--max-gb", type=float, metavar="GB", help="remove the oldest until the run is smaller"
        )
        parser.add_argument(
            "--drop-logs",
            action="store_true",
            help="delete logs that are wholly sealed, of processes that are over",
        )
        parser.add_argument(
            "--yes", action="store_true", help="really remove; without it, only say what would be"
        )

    def run(self, args: Namespace) -> int:
        """Compact the run and report its sizes."""
        check_extra()
        for name in ("keep_days", "max_gb"):
            value = getattr(args, name)
            if value is not None and not value >= 0:
                raise CommandError(f"--{name.replace('_', '-')} must be 0 or more", 2)
        if args.threads is not None:
            import pyarrow

            pyarrow.set_cpu_count(args.threads)
        run = chosen_run(args)
        if run.is_file():
            raise CommandError(f"{run} is one log; give the directory of the run")
        from rollscope.cli.terminal.output import print_json

        done = _compact(run, args)
        if args.json:
            print_json(done)
        else:
            _show(done)
        return 0


def _compact(run: Path, args: Namespace) -> Compaction:
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.store.sealer import Sealer, find_shelf
    from rollscope.store.upkeep.logs import seal_all
    from rollscope.store.upkeep.merging import merge_segments, tidy
    from rollscope.store.upkeep.sizes import sizes_of

    sealer = Sealer(run, find_shelf(run))
    before = sizes_of(sealer)
    sealer.give_up_damaged()
    with bar_of("Sealing the logs") as progress:
        seal_all(sealer, progress)
    with bar_of("Merging segments") as progress:
        merged = merge_segments(sealer, progress)
    done = Compaction(run=str(run), before=before, after=before, merged_segments=merged)
    if merged:
        done.notes.append(
            "files that were merged stay for 10 minutes, for readers that may still use them; "
            "`rollscope compact` deletes them after that"
        )
    _remove(sealer, args, done)
    tidy(sealer)
    done.after = sizes_of(sealer)
    print_problems([*sealer.problems, *sealer.intake.problems])
    return done


def _remove(sealer: "Sealer", args: Namespace, done: Compaction) -> None:
    from rollscope.store.upkeep.logs import drop_logs, finished_logs
    from rollscope.store.upkeep.retention import remove_segments
    from rollscope.store.upkeep.sizes import sizes_of

    logs = finished_logs(sealer)
    log_bytes = sum(path.stat().st_size for path in logs)
    _note_logs(sizes_of(sealer).logs, len(logs), log_bytes, args, done)
    if not args.drop_logs:
        logs, log_bytes = [], 0
    removal = _plan(sealer, args, log_bytes, done)
    done.is_dry_run = not args.yes and bool(logs or removal.segments)
    if args.yes:
        removal = remove_segments(sealer, removal)
        logs = drop_logs(sealer) if logs else []
    done.removed_segments = len(removal.segments)
    done.removed_spans, done.removed_bytes = removal.spans, removal.size
    done.dropped_logs, done.dropped_bytes = len(logs), log_bytes


def _plan(sealer: "Sealer", args: Namespace, log_bytes: int, done: Compaction) -> "Removal":
    from rollscope.screens.tables import say_size
    from rollscope.store.upkeep.retention import plan_removal
    from rollscope.store.upkeep.sizes import sizes_of

    older_than_ns = None
    if args.keep_days is not None:
        older_than_ns = time.time_ns() - int(args.keep_days * _DAY_NS)
    excess = 0
    if args.max_gb is not None:
        limit, sizes = int(args.max_gb * _GB), sizes_of(sealer)
        fixed = sizes.total_bytes - log_bytes - sizes.segment_bytes
        excess = max(fixed + sizes.segment_bytes - limit, 0)
        if fixed > limit:
            # Taking every segment away would not be enough, and leave nothing to look at.
            excess = 0
            done.notes.append(
                f"--max-gb removes nothing, since logs and payloads alone take {say_size(fixed)}"
                + ("" if args.drop_logs else "; add --drop-logs")
            )
    return plan_removal(sealer, older_than_ns=older_than_ns, excess_bytes=excess)


def _note_logs(every: int, finished: int, size: int, args: Namespace, done: Compaction) -> None:
    from rollscope.analysis.wording import say_count
    from rollscope.screens.tables import say_size

    if args.drop_logs and every > finished:
        done.notes.append(
            f"{say_count(every - finished, 'log')} cannot be dropped: the process may still write, "
            "died within the last hour, or left damage behind"
        )
    elif finished and not args.drop_logs:
        done.notes.append(
            f"{say_count(finished, 'log')} ({say_size(size)}) hold nothing but what is sealed; "
            "--drop-logs deletes them (only `rollscope cat` would miss them)"
        )


def _show(done: Compaction) -> None:
    from rollscope.analysis.wording import say_count
    from rollscope.screens.tables import Column, Screen, clean, say_size, show_table, wrap

    screen = Screen.of()
    columns = (Column(""), Column("before", "right"), Column("after", "right"))
    before, after = done.before, done.after
    rows = [
        ("sealed spans", f"{before.spans:,}", f"{after.spans:,}"),
        ("segments", f"{before.segments:,}", f"{after.segments:,}"),
        ("size of segments", say_size(before.segment_bytes), say_size(after.segment_bytes)),
        ("size of logs", say_size(before.log_bytes), say_size(after.log_bytes)),
        ("size of payloads", say_size(before.payload_bytes), say_size(after.payload_bytes)),
        ("size of other files", say_size(before.other_bytes), say_size(after.other_bytes)),
        ("size in all", say_size(before.total_bytes), say_size(after.total_bytes)),
    ]
    if not before.payload_bytes:
        rows = [row for row in rows if row[0] != "size of payloads"]
    out = sys.stdout
    out.write(screen.fit(clean(done.run)) + "\n")
    out.write(show_table(columns, rows, screen, indent=2))
    would = "Would be removed" if done.is_dry_run else "Removed"
    if done.removed_segments:
        out.write(
            f"{would}: {say_count(done.removed_spans, 'span')} in "
            f"{say_count(done.removed_segments, 'segment')} "
            f"({say_size(done.removed_bytes)})\n"
        )
    if done.dropped_logs:
        logs = say_count(done.dropped_logs, "sealed log")
        out.write(f"{would}: {logs} ({say_size(done.dropped_bytes)})\n")
    for note in done.notes:
        out.write(wrap(f"Note: {note}.", screen) + "\n")
    if done.is_dry_run:
        out.write(
            "Nothing was removed yet: add --yes to do it. What is removed cannot come back.\n"
        )
