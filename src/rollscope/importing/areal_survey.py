"""Which session record of AReaL counts: lives, duplicates, newer versions, samples, steps.

Everything stands in columns, some 50 bytes a record, so that a million sessions fit easily.
"""

from array import array
from typing import Any, Final
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.importing.statuses import read_status
from rollscope.importing.values import decode_object, stable_number
from rollscope.model.kinds import Outcome
from rollscope.model.undecodable import UNDECODABLE
from rollscope.otlp.aliases import first_number, whole_number

__all__ = ["DUPLICATE", "SUPERSEDED", "Survey", "worker_of"]

Ints = npt.NDArray[np.int64]
DUPLICATE: Final = -1
SUPERSEDED: Final = -2
_WALL_S: Final = 1e9
_MOST_S: Final = 2**33
_MOST_CHARACTERS: Final = 128
_NO_TIME: Final = float("nan")


class _Keys(msgspec.Struct):
    session_id: Any = None
    request_id: Any = None
    task_id: Any = None
    rank: Any = None
    role: Any = None
    status: Any = None
    submit_ts: Any = None
    finalized_ts: Any = None


_decode = msgspec.json.Decoder(_Keys).decode


def worker_of(role: object, rank: object) -> str:
    """Name the worker that wrote a record."""
    number = whole_number(rank)
    place = "r?" if number is None else f"r{number}"
    return f"{role[:_MOST_CHARACTERS]}-{place}" if isinstance(role, str) and role else place


def _time(value: object) -> float | None:
    number = first_number(value)
    return float(number) if number is not None and abs(number) < _MOST_S else None


class Survey:
    """Looks at all records, then knows what each of them is."""

    def __init__(self, *, with_verdicts: bool) -> None:
        """Know nothing yet.

        Args:
            with_verdicts: Whether steps are going to be inferred from them.
        """
        self._with_verdicts = with_verdicts
        self.places = array("q")
        self.sessions = array("q")
        self._tasks = array("q")
        self._hashes = array("q")
        self.worker_numbers = array("i")
        self._accepted = array("b")
        self._submitted = array("d")
        self._verdicts = array("d")
        self.workers: dict[str, int] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        self.life = array("q")
        """Of each record: the life it belongs to, from 0, or why it does not count."""
        self.sample = array("q")
        self.step = array("q")
        """-1: none."""
        self.task = array("q")
        """A number for each task of each life."""
        self.task_count = 0
        self.last_life: dict[int, int] = {}
        self.step_ends: list[float] = []

    def look(self, place: int, raw: bytes) -> None:
        """Take the keys of a record."""
        try:
            keys = _decode(raw)
        except UNDECODABLE:
            read = decode_object(raw)
            if read is None:
                return
            known = {name: read[0].get(name) for name in _Keys.__struct_fields__}
            keys = _Keys(**known)
        submitted, session = keys.submit_ts, keys.session_id
        if type(submitted) is not float:
            submitted = _time(submitted)
        session = stable_number(keys.request_id if session is None else session)
        if session is None or submitted is None:
            return
        task = stable_number(keys.task_id)
        if self._with_verdicts:
            outcome = read_status(keys.status, has_end=True).outcome
            self._accepted.append(outcome is Outcome.ACCEPTED)
            verdict = _time(keys.finalized_ts)
            self._verdicts.append(_NO_TIME if verdict is None else verdict)
        self.places.append(place)
        self.sessions.append(session)
        self._tasks.append(session if task is None else task)
        # Compared only among records of one session; stays the same if an import is taken up again.
        self._hashes.append(len(raw) << 32 | crc32(raw))
        self.worker_numbers.append(self._worker(keys.role, keys.rank))
        self._submitted.append(submitted)

    def _worker(self, role: object, rank: object) -> int:
        """Number the worker; what is written in the same way is looked up."""
        is_plain = type(role) is str and type(rank) is int
        number = self._known.get((role, rank)) if is_plain else None
        if number is None:
            name = worker_of(role, rank)
            number = self.workers.setdefault(name, len(self.workers))
            if is_plain:
                self._known[role, rank] = number
        return number

    def earliest_wall_s(self) -> float | None:
        """Give the first time that is one of a wall clock."""
        times = np.frombuffer(self._submitted, np.float64)
        walls = times[times >= _WALL_S]
        return float(walls.min()) if len(walls) else None

    def settle(self, batch_size: int | None) -> None:
        """Judge every record."""
        count = len(self.places)
        self.life, life = _column(count, DUPLICATE)
        self.sample, sample = _column(count, 0)
        self.task, task = _column(count, 0)
        self.step, step = _column(count, -1)
        if not count:
            return
        workers = np.frombuffer(self.worker_numbers, np.int32)
        order = np.argsort(workers, kind="stable")
        edges = np.searchsorted(workers[order], np.arange(len(self.workers) + 1))
        for worker in range(len(self.workers)):
            self._judge(life, worker, order[edges[worker] : edges[worker + 1]])
        self._number_tasks(life, task, sample)
        if batch_size is not None:
            self._infer_steps(batch_size, life, task, step)

    def _judge(self, lives: Ints, worker: int, rows: Ints) -> None:
        """Tell the records of one worker, in the order in which they were written, apart."""
        session = np.frombuffer(self.sessions, np.int64)[rows]
        submitted = np.frombuffer(self._submitted, np.float64)[rows]
        hashes = np.frombuffer(self._hashes, np.int64)[rows]
        at = np.arange(len(rows))
        # What was written twice counts where it stood first.
        order = np.lexsort((at, hashes, submitted, session))
        same = _same_as_before(session[order], submitted[order], hashes[order])
        distinct = np.sort(order[~same])
        # Of several versions the one that came last stays.
        order = distinct[np.lexsort((distinct, submitted[distinct], session[distinct]))]
        same = _same_as_before(session[order], submitted[order])
        is_newest = np.append(~same[1:], True)
        lives[rows[order[~is_newest]]] = SUPERSEDED
        first_of = np.maximum.accumulate(np.where(~same, np.arange(len(order)), 0))
        firsts, newest = order[first_of[is_newest]], order[is_newest]
        # An id that comes again with another time belongs to a process that was started anew.
        by_time = np.argsort(firsts, kind="stable")
        newest = newest[by_time]
        by_id = np.lexsort((np.arange(len(newest)), session[newest]))
        ids = session[newest][by_id]
        before = np.full(len(newest), -1, np.int64)
        again = np.nonzero(ids[1:] == ids[:-1])[0] + 1
        before[by_id[again]] = by_id[again - 1]
        life = np.zeros(len(newest), np.int64)
        start = number = 0
        for one in np.nonzero(before >= 0)[0].tolist():
            if before[one] >= start:
                start, number = one, number + 1
                life[one:] = number
        lives[rows[newest]] = life
        self.last_life[worker] = number

    def _number_tasks(self, life: Ints, tasks: Ints, sample: Ints) -> None:
        """Number tasks, and the samples of each by the order of their ids."""
        kept = np.nonzero(life >= 0)[0]
        session = np.frombuffer(self.sessions, np.int64)[kept]
        task = np.frombuffer(self._tasks, np.int64)[kept]
        worker = np.frombuffer(self.worker_numbers, np.int32)[kept]
        life = life[kept]
        order = np.lexsort((session, task, life, worker))
        is_first = ~_same_as_before(worker[order], life[order], task[order])
        at = np.arange(len(order))
        self.task_count = int(is_first.sum())
        tasks[kept[order]] = np.cumsum(is_first) - 1
        sample[kept[order]] = at - np.maximum.accumulate(np.where(is_first, at, 0))

    def _infer_steps(self, batch_size: int, life: Ints, task: Ints, step: Ints) -> None:
        """Let every so many accepted tasks of a worker, by their verdicts, end a step."""
        verdicts = np.frombuffer(self._verdicts, np.float64)
        accepted = np.frombuffer(self._accepted, np.int8) > 0
        chosen = np.nonzero((life >= 0) & accepted & ~np.isnan(verdicts))[0]
        workers = np.frombuffer(self.worker_numbers, np.int32)
        ranks = len(np.unique(workers[chosen]))
        share = max(batch_size // max(ranks, 1), 1)
        ends: dict[int, float] = {}
        for worker in np.unique(workers[chosen]).tolist():
            rows = chosen[workers[chosen] == worker]
            tasks, first = np.unique(task[rows], return_index=True)
            order = np.lexsort((tasks, verdicts[rows[first]]))
            step_of = np.empty(len(tasks), np.int64)
            step_of[order] = np.arange(len(tasks)) // share
            # A step that is not full yet has not ended.
            step_of[step_of >= len(tasks) // share] = -1
            step[rows] = step_of[np.searchsorted(tasks, task[rows])]
            for place in range(share - 1, len(order), share):
                end = float(verdicts[rows[first[order[place]]]])
                ends[place // share] = max(ends.get(place // share, end), end)
        self.step_ends = [ends[step] for step in sorted(ends)]


def _column(count: int, value: int) -> tuple["array[int]", Ints]:
    """Give a column to look things up in, and the same one to work on."""
    column = array("q", np.full(count, value, np.int64).tobytes())
    return column, np.frombuffer(column, np.int64)


def _same_as_before(*columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say of each row whether it equals the row before it."""
    same = np.ones(len(columns[0]), bool)
    same[:1] = False
    for column in columns:
        same[1:] &= column[1:] == column[:-1]
    return same
