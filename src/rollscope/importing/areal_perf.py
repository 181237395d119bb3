"""AReaL's perf events: `perf_tracer/[role/]traces-r{rank}.jsonl`, and the converted JSON."""

import re
from typing import Any, Final

import msgspec

from rollscope.importing.accounts import Report
from rollscope.importing.areal_aligning import Pulses, align
from rollscope.importing.areal_survey import worker_of
from rollscope.importing.formats import Options, Place
from rollscope.importing.values import (
    decode_object,
    derived_id,
    micros_to_ns,
    stable_bytes,
    stable_id,
)
from rollscope.importing.writing import Domain, RunWriter
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["ArealPerf"]

_OK: Final = STATUS_CODES[Status.OK]
_ERROR: Final = STATUS_CODES[Status.ERROR]
_STEP: Final = KIND_CODES[Kind.STEP]
_MISC: Final = SPAN_CODES["misc"]
_DOUBTFUL: Final = ("unanchored", "aligned")
"""Clocks whose spans say so."""
_PROCESS: Final = re.compile(r"(?:\[(\w[^\]]*)\] |\[)?Rank (\d{1,9}), Process ?(\d{1,9})?")
_THREAD: Final = re.compile(r"\[Thread (-?\d{1,18})\]")


class _Life(msgspec.Struct):
    """A process of one file, between two starts."""

    number: int
    pid: int = 0
    role: str = ""
    rank: int | None = None
    is_named: bool = False
    zero_ns: int | None = None
    host: str = ""
    threads: dict[int, str] = {}
    domain: Domain | None = None

    def learn(self, args: dict[str, Any]) -> None:
        """Take role and rank from an event, if they are not known."""
        if not self.role and isinstance(args.get("role"), str):
            self.role = args["role"]
        if self.rank is None:
            self.rank = whole_number(args.get("rank"))


class ArealPerf:
    """Makes spans, events and steps of them; each process has a clock of its own."""

    format = "areal-perf"

    def __init__(self, writer: RunWriter, report: Report, options: Options) -> None:
        self._writer, self._report = writer, report
        self._pulses = Pulses() if options.align else None
        self._count = 0
        self._lives: dict[tuple[int, str], list[_Life]] = {}
        self._walked: dict[tuple[int, str], int] = {}
        self._names: dict[tuple[str, int, int], str] = {}
        self._seen: set[int] = set()
        self._steps: dict[tuple[str, int], tuple[Domain, list[int]]] = {}

    def claims(self, raw: bytes) -> bool:
        """Look for the phase that every event has."""
        return b'"ph"' in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Learn who the processes are, where their lives begin, what their threads are called."""
        read = decode_object(raw)
        if read is None:
            return
        event = read[0]
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        lives = self._lives.setdefault(_process_of(place, event), [])
        if not lives or (_begins(event) and lives[-1].is_named):
            self._count += 1
            lives.append(_Life(self._count, pid=whole_number(event.get("pid")) or 0))
        life = lives[-1]
        life.learn(args)
        if event.get("ph") != "M":
            if self._pulses is not None:
                start_ns = micros_to_ns(event.get("ts"))
                if start_ns is not None:
                    self._pulses.note(str(event.get("name")), life.number, start_ns)
            return
        name, given = event.get("name"), str(args.get("name", ""))
        if name == "process_name":
            life.is_named = True
            found = _PROCESS.search(given)
            if found is not None:
                life.role, life.rank = life.role or found[1] or "", int(found[2])
                life.pid = int(found[3] or life.pid)
        elif name == "thread_name":
            life.threads[whole_number(event.get("tid")) or 0] = given
        elif name == "rollscope_clock":
            life.zero_ns, life.host = whole_number(args.get("unix_ns")), str(args.get("host", ""))

    def settle(self) -> None:
        """Give every life its clock domain; the converted file shares those of the others."""
        counts: dict[str, int] = {}
        found: dict[str, tuple[Domain, list[int]]] = {}
        for lives in self._lives.values():
            for number, life in enumerate(lives):
                worker = worker_of(life.role, life.rank)
                key = (worker, life.pid, number)
                if key not in self._names:
                    counts[worker] = counts.get(worker, 0) + 1
                    ending = f".{counts[worker]}" if counts[worker] > 1 else ""
                    self._names[key] = f"{worker}/perf{ending}"
                life.domain = self._writer.domain(
                    self._names[key],
                    role=life.role,
                    rank=life.rank,
                    host=life.host,
                    pid=life.pid,
                    is_wall=False,
                )
                if life.zero_ns is not None:
                    life.domain.anchor(life.zero_ns)
                    self._writer.note_wall(life.zero_ns)
                found.setdefault(life.domain.name, (life.domain, []))[1].append(life.number)
        if self._pulses is not None:
            align(self._pulses, found)

    def take(self, place: Place, raw: bytes) -> str:
        """Write one event."""
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        event, is_odd = read
        key = _process_of(place, event)
        lives = self._lives.get(key)
        if lives is None:
            return "bad: written while it was read"
        walked = self._walked.get(key, -1)
        if _begins(event):
            walked = self._walked[key] = min(walked + 1, len(lives) - 1)
        life = lives[max(walked, 0)]
        phase, domain = event.get("ph"), life.domain
        if phase == "M":
            self._report.count("perf metadata")
            return ""
        if phase not in ("X", "i", "I", "R") or domain is None:
            return f"an event of phase {phase}"
        start_ns, length_ns = micros_to_ns(event.get("ts")), micros_to_ns(event.get("dur", 0))
        if start_ns is None or length_ns is None:
            return "bad: no time"
        return self._write(life, domain, event, start_ns, length_ns, is_odd=is_odd)

    def _write(
        self,
        life: _Life,
        domain: Domain,
        event: dict[str, Any],
        start_ns: int,
        length_ns: int,
        *,
        is_odd: bool,
    ) -> str:
        given = event.get("args")
        args = dict(given) if isinstance(given, dict) else {}
        tid = whole_number(event.get("tid")) or 0
        thread = life.threads.get(tid, "")
        found = _THREAD.fullmatch(thread)
        tid, thread = (int(found[1]), "") if found else (tid, thread)
        name = str(event.get("name", "event"))[:512]
        is_span = event["ph"] == "X"
        plain = {key: args[key] for key in args if key not in ("rank", "role", "correlation")}
        content = sorted(plain.items(), key=lambda item: str(item[0]))
        own_id = stable_id(domain.name, tid, name, event["ph"], start_ns, length_ns, content)
        if own_id in self._seen:
            return "duplicate"
        self._seen.add(own_id)
        step = whole_number(plain.pop("global_step", None))
        attrs = self._attrs(plain, event, tid, thread, is_odd=is_odd)
        if domain.account.clock in _DOUBTFUL:
            attrs["clock"] = domain.account.clock
        status = _ERROR if "error.type" in attrs else _OK
        end_ns = start_ns + length_ns
        if end_ns < start_ns:
            attrs["clock_suspect"], attrs["source_end_ns"], end_ns = True, end_ns, start_ns
        lane = worker_of(life.role, life.rank)
        if tid < 0:
            lane = f"{lane} {thread or f'[Profiler {-tid}]'}"
        trace_id = stable_bytes(16, domain.name)
        scope: ScopeRow = (trace_id, step, None, None, None, None)
        what = SPAN_CODES.get(str(event.get("cat")), _MISC) if is_span else EVENT_CODE
        fields = {"lane": lane} if is_span else {}
        packed = fit_attrs(attrs)
        domain.add(Row(what, status, name, scope, own_id, 0, start_ns, end_ns, packed, fields))
        self._report.count("perf spans" if is_span else "perf instants")
        if is_span and life.role == "master" and step is not None and name.startswith("train."):
            self._note_step(domain, step, name, start_ns, end_ns)
        return ""

    def _attrs(
        self, attrs: dict[str, Any], event: dict[str, Any], tid: int, thread: str, *, is_odd: bool
    ) -> dict[str, Any]:
        if "exception" in attrs:
            attrs["error.type"] = attrs.pop("exception")
        attrs["tid"] = tid
        if thread:
            attrs["thread"] = thread
        if str(event.get("cat", "misc")) not in SPAN_CODES:
            attrs["source_category"] = str(event["cat"])
        if is_odd:
            attrs["source_not_finite"] = True
        return attrs

    def _note_step(self, domain: Domain, step: int, name: str, start_ns: int, end_ns: int) -> None:
        # From where the rollout of the step begins, if that is known, to its last end.
        begun = start_ns if name == "train.rollout" else -1
        _, bounds = self._steps.setdefault((domain.name, step), (domain, [begun, start_ns, end_ns]))
        bounds[0] = max(bounds[0], begun)
        bounds[1], bounds[2] = min(bounds[1], start_ns), max(bounds[2], end_ns)

    def finish(self) -> None:
        """Write the steps."""
        for (name, step), (domain, (begun, start_ns, end_ns)) in self._steps.items():
            scope: ScopeRow = (stable_bytes(16, name), step, None, None, None, None)
            own_id = derived_id(stable_id(name, "step"), step)
            clock = domain.account.clock
            attrs = {"clock": clock} if clock in _DOUBTFUL else {}
            start_ns = start_ns if begun < 0 else begun
            packed = fit_attrs(attrs)
            domain.add(Row(_STEP, _OK, "step", scope, own_id, 0, start_ns, end_ns, packed, {}))
            self._report.count("steps")


def _process_of(place: Place, event: dict[str, Any]) -> tuple[int, str]:
    return place.file_number, str(event.get("pid"))[:64]


def _begins(event: dict[str, Any]) -> bool:
    return event.get("ph") == "M" and event.get("name") == "process_name"
