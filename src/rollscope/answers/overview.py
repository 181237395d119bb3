"""What the head of every page needs: which run this is, how far it is, whether to trust it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from rollscope.analysis.roles import ROLES, SYNC_PARTS
from rollscope.analysis.wording import say_count, say_names, say_ns
from rollscope.answers.moment import Moment, moment_of
from rollscope.answers.source import fetch
from rollscope.store.embedded import RunStore
from rollscope.store.run import read_run_file

__all__ = [
    "EXPECTED_TAG",
    "Badge",
    "Completeness",
    "Overview",
    "ProcessLine",
    "StepsKnown",
    "overview",
]

EXPECTED_TAG: Final = "sessions"
"""The tag by which a run declares how many sessions it will have."""
_CLOCK_OFF_NS: Final = 50_000_000
_POSITION_OFF_NS: Final = 5_000_000
_SILENT_BEATS: Final = 3
_LEAST_SILENT_NS: Final = 15_000_000_000
_MOST_FAMILIES: Final = 200
_MOST_PROBLEMS: Final = 5


class ProcessLine(msgspec.Struct, kw_only=True):
    """One process of the run."""

    process: int
    title: str
    host: str
    pid: int
    role: str
    rank: int | None
    status: str
    """`alive`, `ended` (closed its log), `dead` (vanished) or `imported` (a file tells of it)."""
    started_ns: int
    last_seen_ns: int
    version: str
    """Of the Rollscope that recorded it."""
    python: str


class StepsKnown(msgspec.Struct, kw_only=True):
    """Which steps the trainer recorded."""

    count: int
    first: int | None
    last: int | None
    running: int | None
    """The step that is open now."""


class Badge(msgspec.Struct, frozen=True):
    """Something that limits how far the numbers can be trusted."""

    kind: str
    """`dropped`, `silent`, `clock`, `missing`, `lost` or `files`."""
    sentence: str


class Completeness(msgspec.Struct, kw_only=True):
    """How complete the run is as it was recorded."""

    sessions_known: int
    sessions_expected: int | None
    """Where the run's tag `sessions` declares how many there will be."""
    records_dropped: int
    missing_frames: int
    silent: list[str]
    """Processes that should live but are not heard of."""
    clock_spread_ns: int
    """How far the clocks of hosts are apart."""
    clock_error_ns: int
    """How wrong positions may still be after times were moved."""
    problems: list[str]
    """What is wrong with the files of the run."""
    badges: list[Badge]


class Overview(msgspec.Struct, kw_only=True):
    """A run at one glance."""

    name: str
    created_ns: int
    now_ns: int
    first_ns: int
    last_ns: int
    """When anything was last heard of it."""
    is_alive: bool
    is_crashed: bool
    """Whether a process died and none is left."""
    unfinished: int
    """Sessions that were lost with their processes."""
    home: str
    """Where to land: `now` while it lives, else `steps`; `sessions` if it has no steps."""
    steps: StepsKnown
    spans: int
    sessions_count: int
    open_sessions: int
    processes: list[ProcessLine]
    hosts: list[str]
    roles: dict[str, str]
    """The role of each phase or span name that has one."""
    families: list[str]
    completeness: Completeness
    tags: dict[str, str]
    versions: list[str]
    """Of the Rollscopes that recorded it."""
    pythons: list[str]


def overview(source: RunStore) -> Overview:
    """Give a run at one glance."""
    moment = moment_of(source)
    file = read_run_file(source.path)
    sql = "SELECT * FROM processes ORDER BY started_ns, process"
    processes = fetch(source, _Process, sql)
    counts = _count(source)
    steps = _steps(source)
    tags = {} if file is None else file.tags
    is_crashed = not moment.is_alive and any(one.status == "dead" for one in processes)
    return Overview(
        name=source.path.name if file is None else file.name,
        created_ns=moment.first_ns if file is None else file.created_ns,
        now_ns=source.now_ns,
        first_ns=moment.first_ns,
        last_ns=moment.last_ns,
        is_alive=moment.is_alive,
        is_crashed=is_crashed,
        unfinished=counts.lost,
        home="now" if moment.is_alive else "steps" if steps.count else "sessions",
        steps=steps,
        spans=sum(one.spans for one in processes),
        sessions_count=counts.sessions_count,
        open_sessions=counts.open,
        processes=[_line(one) for one in processes],
        hosts=sorted({one.host for one in processes if one.host}),
        roles=_roles(),
        families=_families(source),
        completeness=_completeness(source, moment, processes, counts, tags),
        tags=tags,
        versions=sorted({one.version for one in processes if one.version}),
        pythons=sorted({one.python for one in processes if one.python}),
    )


class _Process(ProcessLine, kw_only=True):
    heartbeat_ns: int
    offset_ns: int
    offset_error_ns: int | None
    spans: int
    dropped: int
    missing_frames: int


class _Counts(msgspec.Struct):
    sessions_count: int
    open: int
    lost: int


def _roles() -> dict[str, str]:
    sync = {name: "sync" for names in SYNC_PARTS.values() for name in sorted(names)}
    return sync | {name: role for role, names in ROLES.items() for name in sorted(names)}


def _line(process: _Process) -> ProcessLine:
    fields = ProcessLine.__struct_fields__
    return ProcessLine(**{field: getattr(process, field) for field in fields})


def _count(source: RunStore) -> _Counts:
    sql = """
        SELECT count(*) AS sessions_count,
            coalesce(sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END), 0) AS open,
            coalesce(sum(CASE WHEN status = 'lost' THEN 1 ELSE 0 END), 0) AS lost
        FROM spans WHERE kind = 'session'"""
    (counts,) = fetch(source, _Counts, sql)
    return counts


def _steps(source: RunStore) -> StepsKnown:
    sql = """
        SELECT count(DISTINCT step) AS count, min(step) AS first, max(step) AS last,
            max(CASE WHEN end_ns IS NULL THEN step ELSE NULL END) AS running
        FROM steps WHERE step IS NOT NULL"""
    (known,) = fetch(source, StepsKnown, sql)
    return known


def _families(source: RunStore) -> list[str]:
    sql = f"""
        SELECT DISTINCT family FROM spans WHERE kind = 'session' AND family IS NOT NULL
        ORDER BY family LIMIT {_MOST_FAMILIES}"""
    families: list[str] = source.query(sql)["family"].to_pylist()
    return families


def _completeness(
    source: RunStore,
    moment: Moment,
    processes: Sequence[_Process],
    counts: _Counts,
    tags: Mapping[str, str],
) -> Completeness:
    offsets = [one.offset_ns for one in processes] or [0]
    declared = tags.get(EXPECTED_TAG, "")
    found = Completeness(
        sessions_known=counts.sessions_count,
        sessions_expected=int(declared) if declared.isascii() and declared.isdigit() else None,
        records_dropped=sum(one.dropped for one in processes),
        missing_frames=sum(one.missing_frames for one in processes),
        silent=[one.title for one in processes if _is_silent(one, source.now_ns)],
        clock_spread_ns=max(offsets) - min(offsets),
        clock_error_ns=max((one.offset_error_ns or 0 for one in processes), default=0),
        problems=list(source.problems),
        badges=[],
    )
    found.badges = list(_badges(found, counts, moment))
    return found


def _is_silent(process: _Process, now_ns: int) -> bool:
    limit_ns = max(_SILENT_BEATS * process.heartbeat_ns, _LEAST_SILENT_NS)
    return process.status == "alive" and now_ns - process.last_seen_ns > limit_ns


def _badges(found: Completeness, counts: _Counts, moment: Moment) -> Iterator[Badge]:
    expected = found.sessions_expected
    if expected is not None and found.sessions_known < expected and not moment.is_alive:
        yield Badge("missing", f"{found.sessions_known:,} of {expected:,} sessions are known.")
    if found.records_dropped:
        yield Badge("dropped", f"{say_count(found.records_dropped, 'record')} dropped.")
    if found.missing_frames:
        yield Badge("missing", f"{say_count(found.missing_frames, 'frame')} never arrived.")
    if found.silent:
        yield Badge("silent", f"Nothing is heard of {say_names(found.silent, 4)}.")
    if found.clock_spread_ns >= _CLOCK_OFF_NS:
        apart = say_ns(found.clock_spread_ns)
        yield Badge("clock", f"Clocks are up to {apart} apart; times were moved.")
    if found.clock_error_ns >= _POSITION_OFF_NS:
        yield Badge("clock", f"Positions between hosts are ±{say_ns(found.clock_error_ns)}.")
    if counts.lost:
        whose = "its" if counts.lost == 1 else "their"
        yield Badge("lost", f"{say_count(counts.lost, 'session')} ended with {whose} process.")
    for problem in found.problems[:_MOST_PROBLEMS]:
        yield Badge("files", problem)
