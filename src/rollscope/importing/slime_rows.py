"""slime's timeline cache: `rollout_{n}.trace_timeline_cache.json`, one row for each sample."""

import re
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.slime_items import Item, read_items, read_moment
from rollscope.importing.slime_sessions import add_items, judge_row, row_attrs
from rollscope.importing.tasks import TaskSpans
from rollscope.importing.values import WALL_NS, decode_object, stable_bytes, stable_id
from rollscope.importing.writing import RunWriter
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["SlimeRows"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_TASK: Final = KIND_CODES[Kind.TASK]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_ROLLOUT: Final = re.compile(r"rollout_(eval_)?(\d{1,18})")
_NAME_BYTES: Final = 1024


class _Rollout(NamedTuple):
    """What the name of a file says."""

    step: int | None
    is_eval: bool


class _Chosen(msgspec.Struct):
    place: int
    rank: tuple[int, int]
    digest: int


class SlimeRows:
    """Makes a session of each row. Some 500 bytes are held for one."""

    format = "slime"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._chosen: dict[int, _Chosen] = {}
        self._tasks = TaskSpans(report)

    def claims(self, raw: bytes) -> bool:
        """Look for the names that every row has."""
        return b'"items"' in raw and b'"trace_id"' in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Note which copy of a sample is the newest: a retried one comes again, whole."""
        read = decode_object(raw)
        if read is None:
            return
        row, start_ns = read[0], read_moment(read[0].get("start"))
        if start_ns >= WALL_NS:
            self._writer.note_wall(start_ns)
        step = _rollout(place.file.path).step
        rank = (-1 if step is None else step, read_moment(row.get("end")))
        digest = stable_id(raw)
        found = self._chosen.get(_key(row, place))
        if found is None:
            self._chosen[_key(row, place)] = _Chosen(place.number, rank, digest)
        elif digest != found.digest and rank >= found.rank:
            found.place, found.rank, found.digest = place.number, rank, digest

    def settle(self) -> None:
        """Have nothing to conclude."""

    def take(self, place: Place, raw: bytes) -> str:
        """Write a row."""
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        row, is_odd = read
        if not isinstance(row.get("items"), list):
            return "bad: no row of a timeline"
        key = _key(row, place)
        chosen = self._chosen.get(key)
        if chosen is None:
            return "bad: written while it was read"
        if chosen.place != place.number:
            is_same = stable_id(raw) == chosen.digest
            return "duplicate" if is_same else "an older version of a session"
        items, left = read_items(row.get("items"))
        start_ns = read_moment(row.get("start")) or min(
            (item.start_ns for item in items), default=0
        )
        if not start_ns:
            return "bad: no time"
        for why, count in left.items():
            self._report.count(why, count)
        self._write(place, row, items, key, start_ns, is_odd=is_odd)
        return ""

    def _write(
        self,
        place: Place,
        row: dict[str, Any],
        items: list[Item],
        session_id: int,
        start_ns: int,
        *,
        is_odd: bool,
    ) -> None:
        verdict = judge_row(row, items, self._report)
        attrs = row_attrs(row, items, self._report)
        end_ns = 0
        if verdict.status != _OPEN:
            end_ns = _end(row, items, start_ns, attrs)
        if is_odd:
            attrs["source_not_finite"] = True
        is_wall = start_ns >= WALL_NS
        domain = self._writer.domain("slime" if is_wall else "slime.monotonic", is_wall=is_wall)
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        scope, task_id = _scope(row, _rollout(place.file.path), session_id, attrs)
        fields = {} if verdict.outcome is None else {"outcome": str(verdict.outcome)}
        if verdict.reason:
            fields["reason"] = verdict.reason
        told = (_SESSION, verdict.status, "session", scope, session_id, task_id, start_ns, end_ns)
        domain.add(Row(*told, fit_attrs(attrs), fields))
        add_items(domain, scope, session_id, items, end_ns)
        self._tasks.note(task_id, domain, scope, start_ns, end_ns)
        self._report.count(f"sessions {verdict.outcome or ('completed' if end_ns else 'open')}")

    def finish(self) -> None:
        """Write the tasks."""
        self._tasks.write()


def _end(row: dict[str, Any], items: list[Item], start_ns: int, attrs: dict[str, Any]) -> int:
    last_ns = max((max(item.start_ns, item.end_ns) for item in items), default=0)
    end_ns = read_moment(row.get("end")) or last_ns or start_ns
    if end_ns < start_ns:
        attrs["clock_suspect"], attrs["source_end_ns"] = True, end_ns
        return start_ns
    return end_ns


def _scope(
    row: dict[str, Any], rollout: _Rollout, session_id: int, attrs: dict[str, Any]
) -> tuple[ScopeRow, int]:
    group, sample = row.get("group_index"), row.get("sample_index")
    name = group if isinstance(group, int | str) else sample
    key = clean_text(str(name if name is not None else attrs["session_id"]), _NAME_BYTES)
    kind = "eval" if rollout.is_eval else "train"
    if rollout.is_eval:
        attrs["work"] = kind
    task = ("slime", kind, rollout.step, str(row.get("source")), key)
    place = (rollout.step, key, key if group is not None else None)
    number = whole_number(sample)
    return (stable_bytes(16, *task), *place, session_id, number), stable_id(*task)


def _rollout(path: str) -> _Rollout:
    found = _ROLLOUT.search(PurePath(path).name)
    return _Rollout(None, False) if found is None else _Rollout(int(found[2]), bool(found[1]))


def _key(row: dict[str, Any], place: Place) -> int:
    """Give the id of the session that a row is."""
    trace_id = row.get("trace_id")
    if trace_id:
        return stable_id("slime", str(trace_id))
    return stable_id("slime", PurePath(place.file.path).name, str(row.get("row_id")), place.line)
