"""A row of the store as a span of OpenTelemetry.

Ids, parents and times are the run's own, to the byte and the nanosecond. A task is the root of its
trace and links to its step, which has a trace of its own.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.instrument.tracestate import format_tracestate
from rollscope.model.kinds import Kind, Outcome, Status
from rollscope.model.scope import Scope
from rollscope.otlp.export.attributes import OWN, exported_attrs, place_name
from rollscope.otlp.forms import Attrs, EventForm, Sender, SpanForm
from rollscope.otlp.told import SCOPE_NAME, error_of

__all__ = ["SCOPE_NAME", "ExportRow", "PendingStyle", "SpanMaker"]

EVALUATION: Final = "gen_ai.evaluation.result"
_INTERNAL, _CLIENT = 1, 3
_ERROR: Final = 2
_FAILED: Final = frozenset({str(Outcome.FAILED), str(Outcome.TIMEOUT)})
_OPERATIONS: Final = {"generate": "chat", "toolcall": "execute_tool"}
_AGENT_NAMES: Final = ("gen_ai.agent.name", "agent", "agent_name")
_REWARD_NAMES: Final = ("name", "function", "service")
_MODEL, _TOOL = "gen_ai.request.model", "gen_ai.tool.name"
_OPERATION, _CONVERSATION = "gen_ai.operation.name", "gen_ai.conversation.id"
_SCOPES: Final = frozenset({str(Kind.STEP), str(Kind.TASK), str(Kind.SESSION)})
_PLACED_FACTS: Final = frozenset({"outcome", "reason", "version_end", "consumed_step", "reward"})
_NO_PARENT: Final = "0" * 16
_read_attrs = msgspec.json.Decoder(dict[str, Any]).decode

PendingStyle = str
"""`rollscope`, `logfire`, or empty if spans are told of once they have ended only."""


class ExportRow(NamedTuple):
    """A span as it is read, late facts applied; the names are those of the columns."""

    process: int
    trace_id: bytes
    span_id: int
    kind: str
    """Of an event that belongs to no span: `event`."""
    name: str
    start_ns: int
    status: str
    attrs: str
    parent_id: int | None = None
    session_id: int | None = None
    category: str | None = None
    end_ns: int | None = None
    reason: str | None = None
    outcome: str | None = None
    step: int | None = None
    consumed_step: int | None = None
    consumed_ns: int | None = None
    version_start: int | None = None
    version_end: int | None = None
    task_key: str | None = None
    family: str | None = None
    sample: int | None = None
    group_key: str | None = None
    lane: str | None = None
    replica: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    reward: float | None = None
    events: list[dict[str, Any]] | None = None
    facts: list[str] | None = None
    """What was learned about it later, the last at the end."""
    late: list[str] | None = None
    """Which of all this became known after the span had ended."""


class SpanMaker:
    """Makes spans of rows."""

    def __init__(
        self, run: str, *, pending: PendingStyle = "", most_characters: int | None = None
    ) -> None:
        """Make ready.

        Args:
            run: The name of the run.
            pending: How spans are told of that have not ended yet, if they are.
            most_characters: Text in attributes is cut to so many.
        """
        self._run = run
        self._pending = pending
        self._most = most_characters
        self._state = lru_cache(maxsize=4096)(self._make_state)
        self.steps: Mapping[int, tuple[bytes, int]] = {}
        """Trace and span of each step."""

    def make(self, row: ExportRow, sender: Sender) -> SpanForm:
        """Make a span that has ended."""
        form = self._form(row, sender)
        form.end_ns = max(row.end_ns or row.start_ns, row.start_ns)
        self._end(row, form)
        if self._pending:
            prefix = "logfire." if self._pending == "logfire" else OWN
            form.attrs[prefix + "span_type"] = "span"
        return form

    def make_pending(self, row: ExportRow, sender: Sender) -> SpanForm:
        """Make what tells of a span that has not ended."""
        form = self._form(row, sender)
        form.end_ns = row.start_ns
        if self._pending != "logfire":
            form.attrs[OWN + "span_type"] = "pending"
            return form
        form.attrs["logfire.span_type"] = "pending_span"
        parent = f"{form.parent_id:016x}" if form.parent_id else _NO_PARENT
        form.attrs["logfire.pending_parent_id"] = parent
        form.parent_id, form.span_id = form.span_id, int.from_bytes(os.urandom(8)) | 1
        return form

    def _form(self, row: ExportRow, sender: Sender) -> SpanForm:
        recorded = _read_attrs(row.attrs) if row.attrs and row.attrs != "{}" else {}
        attrs = exported_attrs(recorded, self._most)
        attrs |= self._own_attrs(row, recorded)
        is_root = row.kind in (Kind.TASK, Kind.STEP)
        if is_root and row.parent_id:
            # In another trace, where no parent may be.
            attrs[OWN + "parent_id"] = f"{row.parent_id:016x}"
        form = SpanForm(
            sender=sender,
            scope=SCOPE_NAME,
            trace_id=row.trace_id,
            span_id=row.span_id,
            parent_id=0 if is_root else row.parent_id or 0,
            name=row.name,
            kind=_INTERNAL,
            start_ns=row.start_ns,
            end_ns=0,
            attrs=attrs,
            tracestate=self._state(
                row.step, row.task_key, row.group_key, row.session_id, row.sample
            ),
            events=[_event(one, self._most) for one in row.events or ()],
        )
        self._describe(row, recorded, form)
        return form

    def _make_state(
        self,
        step: int | None,
        task_key: str | None,
        group: str | None,
        session_id: int | None,
        sample: int | None,
    ) -> str:
        scope = Scope(bytes(16), step, task_key, group, session_id, sample)
        return format_tracestate(self._run, scope)

    def _own_attrs(self, row: ExportRow, recorded: Attrs) -> Attrs:
        stale = None
        if row.consumed_step is not None and row.version_start is not None:
            stale = row.consumed_step - row.version_start
        session = None if row.session_id is None else f"{row.session_id:016x}"
        if row.kind == Kind.SESSION and recorded.get("session_id"):
            session = recorded["session_id"]
        given = {
            place_name("run"): self._run,
            place_name("kind"): row.kind,
            OWN + "category": row.category,
            place_name("phase"): row.name if row.kind == Kind.PHASE else None,
            place_name("task_key"): row.task_key,
            place_name("group"): row.group_key,
            place_name("session"): session,
            place_name("sample"): row.sample,
            OWN + "family": row.family,
            OWN + "replica": row.replica,
            place_name("lane"): row.lane,
            place_name("outcome"): row.outcome,
            place_name("reason"): row.reason,
            place_name("step"): row.step,
            place_name("consumed_step"): row.consumed_step,
            place_name("consumed_ns"): row.consumed_ns,
            place_name("status"): row.status,
            place_name("late"): row.late or None,
            place_name("facts"): _other_facts(row) or None,
            place_name("name"): row.name if row.kind in _SCOPES and row.name != row.kind else None,
            place_name("version_start"): row.version_start,
            place_name("version_end"): row.version_end,
            OWN + "staleness": stale,
            OWN + "reward": row.reward,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _describe(self, row: ExportRow, recorded: Attrs, form: SpanForm) -> None:
        """Give a span the name, kind and operation that tools for GenAI look for."""
        attrs = form.attrs
        if row.kind == Kind.TASK:
            form.name = f"rollout {row.family}" if row.family else "rollout"
            step = None if row.step is None else self.steps.get(row.step)
            if step is not None:
                form.links = [f"00-{step[0].hex()}-{step[1]:016x}-01"]
        elif row.kind == Kind.STEP:
            form.name = "step" if row.step is None else f"step {row.step}"
        elif row.kind == Kind.SESSION:
            agent = _first(recorded, _AGENT_NAMES)
            form.name = f"invoke_agent {agent}" if agent else "session"
            if agent:
                attrs |= {_OPERATION: "invoke_agent", "gen_ai.agent.name": agent}
            attrs[_CONVERSATION] = f"{row.session_id or row.span_id:016x}"
        elif row.kind == Kind.PHASE and row.name in _OPERATIONS:
            operation = attrs.setdefault(_OPERATION, _OPERATIONS[row.name])
            about = attrs.get(_MODEL if row.name == "generate" else _TOOL)
            form.name = f"{operation} {about}" if about else str(operation)
            if row.name == "generate":
                form.kind = _CLIENT
                self._count_tokens(row, attrs)
            if row.session_id is not None:
                attrs.setdefault(_CONVERSATION, f"{row.session_id:016x}")
        elif row.kind == Kind.PHASE and row.name == "reward":
            judge = _first(recorded, _REWARD_NAMES)
            form.name = f"reward {judge}" if judge else "reward"

    def _count_tokens(self, row: ExportRow, attrs: Attrs) -> None:
        for way, count in (("input", row.tokens_in), ("output", row.tokens_out)):
            if count is not None:
                attrs.setdefault(f"gen_ai.usage.{way}_tokens", count)

    def _end(self, row: ExportRow, form: SpanForm) -> None:
        """Say how a span ended, and what it was worth."""
        attrs = form.attrs
        if row.reward is not None:
            judged = {"gen_ai.evaluation.name": "reward"}
            score = {**judged, "gen_ai.evaluation.score.value": row.reward}
            form.events.append(EventForm(EVALUATION, form.end_ns, score))
        if row.status == Status.OK and row.outcome not in _FAILED:
            return
        kind, message = error_of(row.status, row.outcome, row.reason)
        form.status, form.message = _ERROR, message
        attrs.setdefault("error.type", kind)
        if row.status == Status.ERROR:
            said = {"exception.type": attrs["error.type"], "exception.message": message}
            form.events.append(EventForm("exception", form.end_ns, said))


def _other_facts(row: ExportRow) -> Attrs:
    """Give what was learned later about a span and has no place of its own."""
    facts: Attrs = {}
    for one in row.facts or ():
        facts |= _read_attrs(one)
    if row.kind == Kind.SESSION:
        return {name: value for name, value in facts.items() if name not in _PLACED_FACTS}
    return facts


def _first(attrs: Attrs, names: tuple[str, ...]) -> str | None:
    return next((str(attrs[name]) for name in names if attrs.get(name)), None)


def _event(row: dict[str, Any], most: int | None) -> EventForm:
    attrs = exported_attrs(_read_attrs(row["attrs"] or "{}"), most)
    return EventForm(row["name"], row["time_ns"], attrs)
