"""Makes a report of a run, and puts it where it is wanted, whole or not at all."""

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from rollscope.answers.scope import StepScope, known_steps, resolve_scope
from rollscope.answers.sessions import SessionLine
from rollscope.answers.sharing import sharing
from rollscope.errors import CommandError
from rollscope.reports.blocks import Blocks
from rollscope.reports.choices import MANY_SPANS, MOST_SPANS, ROUNDED_NS, ReportChoices
from rollscope.reports.details import choose_details
from rollscope.reports.document import read_shell
from rollscope.reports.drawing import draw_groupings, draw_timeline
from rollscope.reports.gathering import Answers
from rollscope.reports.plan import Asked, about_metrics, about_run, about_step
from rollscope.reports.selections import selections_of
from rollscope.reports.sessionlist import Window, session_lines
from rollscope.reports.shortids import ShortIds
from rollscope.store.embedded import RunStore
from rollscope.timeline import TimelineIndex

__all__ = ["Written", "write_report"]

Progress = Callable[[int, int], None]
"""Told of how much is done, and of how much there is."""

_MOST_STEPS: Final = 100
"""That are told of in full, the latest; more make a file that nobody can send."""
_PER_BLOCK: Final = 24
_YOUNG_OBJECTS: Final = 200_000


class Written(msgspec.Struct, kw_only=True):
    """What was made."""

    path: str
    size_bytes: int
    steps: int
    """Steps that it tells of in full."""
    sessions_listed: int
    details: int
    """Sessions that it tells of in full."""
    spans: int
    """Of the run."""
    notes: list[str]
    """What a reader has to know."""
    blocks: dict[str, int]
    """Bytes by block."""


def write_report(
    store: RunStore,
    path: str | os.PathLike[str],
    choices: ReportChoices | None = None,
    *,
    window: Window = (None, None),
    progress: Progress | None = None,
) -> Written:
    """Write a report of a run.

    Args:
        store: The run.
        path: The file, which is replaced if there is one.
        choices: What goes in.
        window: From when and until when; None for as far as it goes.
        progress: Told as it goes on.

    Raises:
        CommandError: The file cannot be written, or the run has no such steps.
        MissingExtra: The page was not built.
    """
    target = Path(path)
    choices = choices or ReportChoices()
    shell = read_shell()
    scope = _scope(store, choices.scope, window)
    with _replacing(target) as file, store.held(), sharing(), _rare_collections():
        file.write(shell.before)
        blocks = Blocks(file)
        report = _Report(store, scope, choices, window, progress or (lambda *_: None))
        report.write(blocks)
        file.write(shell.behind)
        size = file.tell()
    return Written(
        path=str(target),
        size_bytes=size,
        steps=len(report.steps),
        sessions_listed=len(report.lines),
        details=len(report.details),
        spans=report.index.total_spans,
        notes=report.notes,
        blocks=blocks.sizes,
    )


class _Report:
    def __init__(
        self,
        store: RunStore,
        scope: StepScope,
        choices: ReportChoices,
        window: Window,
        progress: Progress,
    ) -> None:
        self._store, self._scope, self._choices = store, scope, choices
        self._progress = progress
        self._done = 0
        self.index = TimelineIndex(store, "host")
        self.lines = session_lines(store, scope, window)
        self._window = window if scope.is_all else _extent(self.lines, window)
        self.steps = [step for step in known_steps(store) if _holds(scope, step)][-_MOST_STEPS:]
        ids = {*self.index.session_ids.tolist(), *(line.row.span_id for line in self.lines)}
        self._names = ShortIds(ids, is_whole=choices.ids)
        is_large = self.index.total_spans > MANY_SPANS
        unit_ns = ROUNDED_NS if is_large else 1
        self._answers = Answers(store, self.lines, self._names, unit_ns)
        self.notes = list(self._notes())
        self.details = choose_details(self.lines)

    def write(self, blocks: Blocks) -> None:
        """Ask everything, block by block."""
        overview = self._answers.raw(Asked("overview", {}, {}))
        blocks.add_answers("run", self._about_run(overview))
        blocks.add_sessions(self._answers.sessions)
        for step in self.steps:
            blocks.add_answers(f"step-{step}", self._about_step(step))
            self._tell()
        for timeline in draw_groupings(self.index, self._store):
            for drawing in draw_timeline(timeline, self._names, self._window):
                blocks.add_drawing(drawing)
        for first in range(0, len(self.details), _PER_BLOCK):
            some = self.details[first : first + _PER_BLOCK]
            blocks.add_answers(f"details-{first}", self._about_sessions(some))
            self._tell()
        blocks.finish(
            run=overview["name"],
            list={
                "runs": [_entry(overview)],
                "now_ns": overview["now_ns"],
                "dir": "this report",
            },
            has_payloads=self._choices.payloads,
        )

    def _about_run(self, overview: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        known = overview["completeness"]
        badges = [*known["badges"], *({"kind": "report", "sentence": one} for one in self.notes)]
        changes: dict[str, dict[str, Any]] = {
            "overview": {"is_alive": False, "completeness": {**known, "badges": badges}},
            "now": {"is_alive": False},
        }
        yield from self._answers.block(about_run(self._scope, self.steps), changes)
        self._tell()
        metrics = self._answers.raw(Asked("metrics", {}, {}))
        names = [one["name"] for one in metrics["metrics"]]
        yield from self._answers.block(about_metrics(names))
        self._tell()

    def _about_step(self, step: int) -> Iterator[tuple[str, Any]]:
        asked = list(about_step(step))
        answer = self._answers.raw(asked[0])
        yield from self._answers.block(asked)
        if answer is not None:
            yield from self._answers.block(selections_of(step, answer, self._names))

    def _about_sessions(self, ids: list[int]) -> Iterator[tuple[str, Any]]:
        for session_id in ids:
            yield from self._answers.of_session(session_id, payloads=self._choices.payloads)

    def _notes(self) -> Iterator[str]:
        spans = self.index.total_spans
        if self._answers.raw(Asked("overview", {}, {}))["is_alive"]:
            yield "Made while the run was going on; it shows the run as of then."
        if spans > MANY_SPANS:
            yield "Times in long lists and in the timeline are rounded to 100 µs."
        if spans > MOST_SPANS:
            yield f"{spans:,} spans: the timeline is drawn from pictures at three zooms."
        if not self._scope.is_all:
            yield f"Only steps {self._scope.text} are in this report."
        elif len(self.steps) == _MOST_STEPS:
            yield f"Only the last {_MOST_STEPS} steps are told of in full."

    def _tell(self) -> None:
        self._done += 1
        chunks = -(-len(self.details) // _PER_BLOCK)
        self._progress(self._done, 2 + len(self.steps) + chunks)


def _scope(store: RunStore, text: str, window: Window) -> StepScope:
    """Find the steps that are meant; of a window, those that lie in it, if there are any."""
    scope = resolve_scope(store, text)
    low_ns, high_ns = window
    if not scope.is_all or low_ns is None or high_ns is None:
        return scope
    sql = """
        SELECT min(step) AS first, max(step) AS last FROM steps
        WHERE start_ns < $high AND (end_ns IS NULL OR end_ns > $low)"""
    (found,) = store.query(sql, low=low_ns, high=high_ns).to_pylist()
    return StepScope(found["first"], found["last"])


def _holds(scope: StepScope, step: int) -> bool:
    first, last = scope.first, scope.last
    return first is None or last is None or first <= step <= last


def _extent(lines: list[SessionLine], window: Window) -> Window:
    """Give from when until when the sessions ran."""
    if not lines:
        return window
    ends = [line.row.start_ns + line.ran_ns for line in lines]
    return min(line.row.start_ns for line in lines), max(ends)


def _entry(overview: dict[str, Any]) -> dict[str, Any]:
    """Give the line of the run in a list of runs."""
    return {
        "name": overview["name"],
        "is_alive": False,
        "created_ns": overview["created_ns"],
        "last_ns": overview["last_ns"],
        "spans": overview["spans"],
        "open_sessions": overview["open_sessions"],
        "steps": overview["steps"]["count"],
        "size_bytes": 0,
    }


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """Give a file that takes the place of another once it is whole."""
    if target.is_dir():
        raise CommandError(f"{target} is a directory; give the name of a file in it")
    temporary = None
    try:
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
        )
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage less often: every look goes over the lists of sessions, which stay."""
    usual = gc.get_threshold()
    if usual[0]:
        gc.set_threshold(max(usual[0], _YOUNG_OBJECTS), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
