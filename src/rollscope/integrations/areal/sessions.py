"""`SessionTracer`: sessions from their registration to their line in the classic file."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Final

from rollscope.instrument.clock import SystemClock, read_both
from rollscope.instrument.guard import tell_once
from rollscope.integrations.areal import mirror
from rollscope.integrations.areal.arguments import take_arguments
from rollscope.integrations.areal.files import LineFile
from rollscope.integrations.areal.records import (
    Anchor,
    Interval,
    SessionRecord,
    Verdict,
    read_verdict,
)
from rollscope.integrations.areal.sessionbook import SessionBook
from rollscope.integrations.areal.settings import SessionSettings, read_session_settings
from rollscope.integrations.areal.writer import Writer

__all__ = ["SessionTracer"]

_KNOWN: Final = frozenset(("accepted", "rejected", "failed", "dropped"))
_EVENT: Final = ("session_id", "event")
LATE: Final = "late_session"


class SessionTracer:
    """Records the sessions of one process.

    Args:
        config: A `SessionTracerConfig`, or the like.
        output_path: The file that sessions go to.
        rank: Of this process.
        role: What this process does.
        writer: Writes the file; one of its own if not given.
    """

    def __init__(
        self,
        config: object,
        *,
        output_path: str,
        rank: int,
        role: str | None = None,
        writer: Writer | None = None,
    ) -> None:
        is_read = isinstance(config, SessionSettings)
        settings = config if is_read else read_session_settings(config)
        assert isinstance(settings, SessionSettings)  # noqa: S101  (for the type checker)
        self._rank, self._role = rank, role
        self._threshold = settings.flush_threshold
        self.file = LineFile(output_path, int(settings.max_buffer_mb * 2**20))
        self.unknown = 0
        """Verdicts without a status that AReaL knows."""
        self._begin(0)
        self._writer = writer or Writer(is_sync=settings.sync_writes)
        self._writer.add(self)

    def _begin(self, first_id: int) -> None:
        # Re-entrant: a signal handler that flushes may interrupt any of our own calls.
        self._lock = threading.RLock()
        self._anchor = Anchor(*read_both(SystemClock()))
        self._book = SessionBook(first_id)
        self._is_woken = False

    @property
    def dropped(self) -> int:
        """Newer lines that were given up because no forced flush came."""
        return self._book.dropped

    def register_task(self, task_id: int) -> None:
        """Begin a task; one that is known and not over goes on."""
        with self._lock:
            self._book.renew_task(task_id)

    def register_session(self, task_id: int) -> int:
        """Begin a session of a task and give its number."""
        with self._lock:
            return self._book.add_session(task_id, self._rank, self._role).session_id

    def get_session_ids(self, task_id: int) -> list[int]:
        """Give the sessions of a task that can still be told about."""
        with self._lock:
            task = self._book.tasks.get(task_id)
            return [] if task is None else list(task.sessions)

    def record_event(self, /, *given: Any, **payload: Any) -> None:
        """Record what a `SessionTraceEvent`, or text such as "plan_start", stands for.

        `record_event(session_id, event, **payload)`, as in AReaL.
        """
        session_id, event = take_arguments("record_event", _EVENT, given, payload)
        name = str(getattr(event, "value", event))
        if name == "finalized":
            self.finalise(session_id, payload)
        else:
            self.mark(session_id, name, payload)

    def mark(self, session_id: int, name: str, payload: dict[str, Any]) -> bool:
        """Begin or end a phase by a mark; false if the name tells neither."""
        phase, _, edge = name.rpartition("_")
        if not phase or edge not in ("start", "end"):
            return False
        with self._lock:
            if edge == "start":
                self.begin_phase(session_id, phase, payload, by_mark=True)
                return True
            record = self._book.records.get(session_id)
            if record is None:
                return True
            opened = [
                part
                for part in record.phases.get(phase, ())
                if part.by_mark and part.end_ns is None
            ]
            part = opened[-1] if opened else self.begin_phase(session_id, phase, {})
            if part is not None:
                self.end_phase(session_id, part, payload, None)
        return True

    def begin_phase(
        self, session_id: int, phase: str, payload: dict[str, Any], *, by_mark: bool = False
    ) -> Interval | None:
        """Begin a phase; None if the session is not known, or no longer."""
        with self._lock:
            record = self._book.records.get(session_id)
            if record is None:
                return None
            part = Interval(time.perf_counter_ns(), by_mark=by_mark)
            part.span = mirror.open_phase(record, phase, payload)
            record.phases.setdefault(phase, []).append(part)
            record.open_phases += 1
            record.is_dirty = True
            return part

    def end_phase(
        self,
        session_id: int,
        part: Interval,
        payload: dict[str, Any],
        error: BaseException | None,
    ) -> None:
        """End a phase."""
        with self._lock:
            part.end_ns = time.perf_counter_ns()
            mirror.close_phase(part, payload, error)
            record = self._book.records.get(session_id)
            if record is not None:
                record.open_phases -= 1
                record.is_dirty = True
                self._look_at(record)

    def begin_call(self, session_id: int) -> SessionRecord | None:
        """Note that a function runs for a session, whose end is the session's."""
        with self._lock:
            record = self._book.records.get(session_id)
            if record is not None:
                record.calls += 1
                record.had_call = True
            return record

    def end_call(self, record: SessionRecord, error: BaseException | None) -> None:
        """Note that the function has ended."""
        with self._lock:
            record.calls -= 1
            if record.calls or record.ended_ns is not None:
                return
            # A closed generator and the like are ends as any other.
            record.own_error = isinstance(error, Exception) or (
                error is not None and not isinstance(error, (GeneratorExit, SystemExit))
            )
            record.task.has_failed_session |= record.own_error
            record.ended_ns = time.perf_counter_ns()
            mirror.end_session(record, error)
            self._look_at(record)

    def increment_counter(self, session_id: int, name: str, value: int = 1) -> None:
        """Add to a counter of a session."""
        with self._lock:
            record = self._book.records.get(session_id)
            if record is None:
                return
            try:
                record.counters[name] = record.counters.get(name, 0) + value
            except TypeError:
                tell_once("areal-counter", "Rollscope cannot add %.100r to a counter", value)
                return
            record.is_dirty = True
            mirror.note_counter(record, name)

    def finalise(self, session_id: int, payload: dict[str, Any]) -> None:
        """Give a session its verdict; the last one before the line is written counts."""
        with self._lock:
            record = self._book.records.get(session_id)
            if record is not None:
                self._judge(record, read_verdict(payload, of_task=False))
        self._write_if_many()

    def finalise_task(self, task_id: int, payload: dict[str, Any]) -> None:
        """Give all sessions of a task their verdict, those to come included."""
        with self._lock:
            task = self._book.tasks.get(task_id)
            if task is None:
                return
            task.verdict = verdict = read_verdict(payload, of_task=True)
            for record in list(task.sessions.values()):
                self._judge(record, verdict)
            self._book.close_if_over(task_id, task)
        self._write_if_many()

    def _judge(self, record: SessionRecord, verdict: Verdict) -> None:
        if verdict.status is None or verdict.status not in _KNOWN:
            self.unknown += 1
        if verdict.status is not None:
            record.status = verdict.status
        if verdict.reason is not None or "reason" in verdict.extra:
            record.reason = verdict.reason
        record.verdict, record.is_dirty = verdict, True
        mirror.verdict_event(record, verdict)
        if not record.is_final_written:
            self._book.ready[record.session_id] = record
        if record.is_settled:
            mirror.judge(record, verdict)
        self._look_at(record)

    def _look_at(self, record: SessionRecord) -> None:
        """See whether a session is over, and whether it can be forgotten."""
        if record.is_running:
            return
        task = record.task
        if record.verdict is None and task.verdict is not None and record.phases:
            self._judge_late(record, task.verdict)
            return
        if record.verdict is None:
            if task.verdict is not None and record.ended_ns is not None:
                self._judge_late(record, task.verdict)
            return
        if record.ended_ns is None:
            record.ended_ns = record.last_end_ns() or record.verdict.at_ns
            mirror.end_session(record, None)
        if not record.is_settled:
            record.is_settled = True
            mirror.judge(record, record.verdict)
            task.running -= 1
            self._book.close_if_over(record.task_id, task)
        if record.is_final_written:
            self._book.forget(record)

    def _judge_late(self, record: SessionRecord, verdict: Verdict) -> None:
        now = time.perf_counter_ns()
        self._judge(record, Verdict(verdict.status, LATE, now, True, {}))

    def gather(self, *, force: bool) -> None:
        """Hand the lines of sessions with a verdict to the file; with `force` all that changed."""
        with self._lock:
            self._is_woken = False
            chosen = self._book.take_unwritten(force=force)
            if not chosen:
                return
            anchor = self._anchor
            lines = [record.as_line(anchor) for record in chosen]
            self.file.put(lambda: lines)
            for record in chosen:
                self._book.note_written(record)

    def _write_if_many(self) -> None:
        if len(self._book.ready) < self._threshold:
            return
        if self._writer.is_sync:
            self.flush()
        elif not self._is_woken:  # each wake is a system call
            self._is_woken = True
            self._writer.wake()

    def flush(self, force: bool = False) -> None:
        """Write the lines that are ready, with `force` all; they are on disk at return."""
        self.gather(force=force)
        self._writer.write()

    def reset(self) -> None:
        """Write all lines, forget all sessions and count from 0 again."""
        self.flush(force=True)
        with self._lock:
            self._book.close_all()
            self._begin(0)

    def restart_after_fork(self) -> None:
        """Forget what the parent has, and go on with a file of our own.

        Numbers go on from the parent's: code that came over may still name one of its sessions.
        """
        self._begin(self._book.next_id)
        folder = os.path.dirname(self.file.path)
        self.file.restart(os.path.join(folder, f"sessions-r{self._rank}-p{os.getpid()}.jsonl"))
