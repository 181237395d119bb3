"""A growing output folder of verifiers or prime-rl as a run that grows with it.

An import sees everything before it writes anything. Here a session is written when its line comes,
and what is learned later (that it was trained on, and when) follows as a fact.
"""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rollscope.errors import CommandError
from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.formats import Place
from rollscope.importing.reading import MOST_LINE_BYTES
from rollscope.importing.values import stable_id
from rollscope.importing.verifiers_episodes import VerifiersEpisodes
from rollscope.importing.verifiers_records import Shape, read_record
from rollscope.importing.verifiers_sessions import Episode
from rollscope.importing.verifiers_survey import digest_of, key_of
from rollscope.importing.writing import Domain, RunWriter
from rollscope.instrument.sinks.file import write_run_file
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.rundir import RUN_FILE
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import NO_ATTRS, Row

__all__ = ["Following", "LiveEpisodes"]

_MARK: Final = "following.json"
"""Says of a run that it was made from a folder, and can be made again."""
_TASK: Final = KIND_CODES[Kind.TASK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Of one file at a time, so that every file gets its turn."""


class _Written(NamedTuple):
    domain: Domain
    trace_id: bytes


class LiveEpisodes(VerifiersEpisodes):
    """Takes records as they come; some 900 bytes are held for an episode."""

    def __init__(self, writer: RunWriter, report: Report) -> None:
        super().__init__(writer, report)
        self._sessions: dict[int, _Written] = {}
        self._session_of: dict[int, int] = {}
        """By the id of a trace."""

    def take(self, place: Place, raw: bytes) -> str:
        """Write a session, or what became known of one that was written before."""
        read = read_record(raw)
        shape = Shape.NONE if read is None else read[0].shape
        if read is None or shape is Shape.NONE:
            return super().take(place, raw)
        if shape is Shape.UPDATE:
            why = super().take(place, raw)
            later = self._survey.later.get(stable_id("trace", read[0].text("trace_id")))
            session_id = self._session_of.get(stable_id("trace", read[0].text("trace_id")))
            if not why and later is not None and session_id is not None:
                self._tell(session_id, later.consumed_step, is_effective=bool(later.is_effective))
            return why
        session_id = key_of(read[0], digest_of(raw))
        if session_id not in self._sessions:
            return super().take(place, raw)
        chosen = self._survey.find(read[0], digest_of(raw))
        if chosen is not None:
            self._tell(session_id, chosen.consumed_step, is_effective=chosen.is_effective)
        return "duplicate"

    def _tell(self, session_id: int, consumed_step: int | None, *, is_effective: bool) -> None:
        facts: dict[str, object] = {"outcome": "accepted"} if is_effective else {}
        if consumed_step is not None:
            facts["consumed_step"] = consumed_step
        if facts:
            written = self._sessions[session_id]
            written.domain.fact(written.trace_id, session_id, time.time_ns(), facts)

    def _note_session(
        self, session_id: int, domain: Domain, scope: ScopeRow, episode: Episode
    ) -> None:
        self._sessions[session_id] = _Written(domain, scope[0])
        for trace in episode.traces:
            self._session_of[stable_id("trace", trace.source_id)] = session_id

    def _note_task(
        self, task_id: int, domain: Domain, scope: ScopeRow, start_ns: int, end_ns: int
    ) -> bool:
        is_first = super()._note_task(task_id, domain, scope, start_ns, end_ns)
        if is_first:
            row = (_TASK, _OPEN, "task", (*scope[:4], None, None), task_id, 0, start_ns, 0)
            domain.add(Row(*row, NO_ATTRS, {}))
        return is_first


class _Tail:
    """A file that grows: gives its whole lines, each once."""

    def __init__(self, path: Path, number: int) -> None:
        self.account = FileAccount(path=str(path), format="verifiers")
        self._path, self._number = path, number
        self._offset = self._lines = 0

    def read(self) -> list[tuple[Place, bytes]]:
        if self._path.stat().st_size < self._offset:
            # It was begun anew; what was told before is known by its id.
            self._offset = self._lines = 0
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            held = file.read(_MOST_BYTES)
            while b"\n" not in held and len(held) <= MOST_LINE_BYTES:
                more = file.read(_MOST_BYTES)
                if not more:
                    break
                held += more
        whole = held[: held.rfind(b"\n") + 1]
        if not whole and len(held) > MOST_LINE_BYTES:
            self.account.leave("bad: longer than 64 MiB", self._lines + 1)
            self._offset += len(held)  # the rest of it will be no JSON
        self._offset += len(whole)
        return list(self._places(whole))

    def _places(self, whole: bytes) -> Iterator[tuple[Place, bytes]]:
        for line in whole.split(b"\n")[:-1]:
            self._lines += 1
            if raw := line.strip():
                yield Place(self.account, self._number, self._lines), raw


class Following:
    """Writes a run from a folder, again and again what is new."""

    def __init__(self, folder: Path, run: Path) -> None:
        """Begin a run; one that was made from a folder before is made anew.

        Raises:
            CommandError: The run exists and was not made so, or there is no such folder.
        """
        if not folder.is_dir():
            raise CommandError(f"there is no folder {folder}")
        if run.exists() and any(run.iterdir()):
            if not (run / _MARK).exists():
                raise CommandError(
                    f"{run} exists and was not made from a folder; give another name"
                )
            shutil.rmtree(run)
        run.mkdir(parents=True, exist_ok=True)
        (run / _MARK).write_text(json.dumps({"folder": str(folder)}))
        write_run_file(
            str(run / RUN_FILE), run.name, time.time_ns(), {"source": "verifiers"}, b"follow"
        )
        self.report = Report(run=run.name)
        self._folder = folder
        self._writer = RunWriter(run, self.report, {})
        self._episodes = LiveEpisodes(self._writer, self.report)
        self._tails: dict[Path, _Tail] = {}

    def poll(self) -> int:
        """Write what is new, and say how many records that were."""
        fresh = [told for tail in self._look() for told in tail.read()]
        for place, raw in fresh:
            self._episodes.survey(place, raw)
        if fresh:
            self._episodes.settle()
        for place, raw in fresh:
            place.file.read += 1
            why = self._episodes.take(place, raw)
            if why == "duplicate":
                place.file.duplicates += 1
            elif why:
                place.file.leave(why, place.line)
            else:
                place.file.imported += 1
        if fresh:
            self._writer.flush()
        return len(fresh)

    def _look(self) -> list[_Tail]:
        for path in sorted(self._folder.rglob("*.jsonl")):
            if path.is_file() and path not in self._tails:
                tail = self._tails[path] = _Tail(path, len(self._tails))
                self.report.files.append(tail.account)
        return [tail for path, tail in self._tails.items() if path.exists()]

    def close(self) -> None:
        """Close the tasks and the run."""
        self._episodes.finish()
        self._writer.close()
