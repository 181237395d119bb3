"""Sessions as AReaL's session tracer writes them: one file of JSON lines per role and rank.

What came from AReaL gets its own words and sums back, so that an import and this export together
change nothing. Other sessions are told in AReaL's words; see `areal_words`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.exporting.areal_words import record_of, role_of
from rollscope.exporting.chrome import ByteSink
from rollscope.exporting.output import open_output
from rollscope.exporting.picking import Steps
from rollscope.exporting.scratch import Scratch
from rollscope.exporting.tables_sessions import make_sessions

__all__ = ["ArealPhase", "ArealSession", "WrittenSessions", "write_areal", "write_areal_lines"]

_NAMELESS: Final = frozenset({"", ".", ".."})


class ArealSession(NamedTuple):
    """What a record is made of; names and units are the store's."""

    seq: int
    role: str | None
    rank: int | None
    session_id: int
    trace_id: bytes
    task_key: str | None
    sample: int | None
    status: str
    outcome: str | None
    reason: str | None
    start_ns: int
    end_ns: int | None
    verdict_ns: int | None
    step: int | None
    version_start: int | None
    version_end: int | None
    tokens_out: int | None
    turns: int | None
    lane: str | None
    error_message: str | None
    attrs: str | None


class ArealPhase(NamedTuple):
    """One time in a phase."""

    seq: int
    name: str
    start_ns: int
    end_ns: int | None
    attrs: str | None


class WrittenSessions(msgspec.Struct):
    """What was written."""

    sessions: int = 0
    files: int = 0
    bytes: int = 0


def write_areal(
    scratch: Scratch, run: str, folder: Path, *, steps: Steps | None = None, strict: bool = False
) -> WrittenSessions:
    """Write `[role/]sessions-r{rank}.jsonl` into a folder; each is there whole or not at all.

    Args:
        scratch: Beside the run, and empty.
        run: What the run is called.
        folder: Where the files go.
        steps: Only sessions of these.
        strict: Only keys that AReaL writes itself.
    """
    written = WrittenSessions()
    taken: set[Path] = set()
    current: tuple[str | None, int] | None = None
    with ExitStack() as files:
        for session, line in _lines(scratch, run, steps, strict=strict):
            whose = (role_of(session), session.rank or 0)
            if whose != current:
                files.close()
                path = _place_of(folder, *whose, taken)
                path.parent.mkdir(parents=True, exist_ok=True)
                sink = files.enter_context(open_output(path))
                current, written.files = whose, written.files + 1
            sink.write(line)
            written.sessions += 1
            written.bytes += len(line)
    return written


def write_areal_lines(
    scratch: Scratch, run: str, sink: ByteSink, *, steps: Steps | None = None, strict: bool = False
) -> None:
    """Write the lines of all files one after the other."""
    for _, line in _lines(scratch, run, steps, strict=strict):
        sink.write(line)


def _place_of(folder: Path, role: str | None, rank: int, taken: set[Path]) -> Path:
    """Name a file; a role may be called anything, and two may be left with one name."""
    name = PurePosixPath((role or "").replace("\0", "")).name[:100]
    folder = folder if name in _NAMELESS else folder / name
    path, number = folder / f"sessions-r{rank}.jsonl", 1
    while path in taken:
        number += 1
        path = folder / f"sessions-r{rank}.{number}.jsonl"
    taken.add(path)
    return path


def _lines(
    scratch: Scratch, run: str, steps: Steps | None, *, strict: bool
) -> Iterator[tuple[ArealSession, bytes]]:
    make_sessions(scratch, steps)
    scratch.run(f"""
        CREATE TABLE export.numbered AS
        SELECT row_number() OVER (ORDER BY {_BY_FILE}) AS seq, *
        FROM export.sessions""")
    scratch.run("""
        CREATE TABLE export.parts AS
        SELECT n.seq, p.name, p.start_ns, p.span_id, p.attrs,
            CASE WHEN p.status IN ('open', 'lost') THEN NULL ELSE p.end_ns END AS end_ns
        FROM phases AS p JOIN export.numbered AS n ON p.session_id = n.session_id""")
    phases = _phases(scratch)
    ahead = next(phases, None)
    columns = ", ".join(ArealSession._fields)
    for batch in scratch.stream(f"SELECT {columns} FROM export.numbered ORDER BY seq"):
        values: Any  # a row of these very columns
        for values in batch:
            session, own = ArealSession(*values), []
            while ahead is not None and ahead.seq == session.seq:
                own.append(ahead)
                ahead = next(phases, None)
            yield session, record_of(session, own, run, strict=strict)


_ROLE: Final = """
    CASE WHEN lane IN ('r?', 'r' || coalesce(CAST(rank AS VARCHAR), 'None')) THEN NULL
        ELSE nullif(role, '') END"""
_BY_FILE: Final = f"""
    {_ROLE} NULLS FIRST, coalesce(rank, 0), verdict_ns NULLS LAST, start_ns,
    session_id"""


def _phases(scratch: Scratch) -> Iterator[ArealPhase]:
    columns = ", ".join(ArealPhase._fields)
    order = "seq, start_ns, end_ns NULLS LAST, span_id"
    for batch in scratch.stream(f"SELECT {columns} FROM export.parts ORDER BY {order}"):
        values: Any  # a row of these very columns
        for values in batch:
            yield ArealPhase(*values)
