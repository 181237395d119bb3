"""The span tree that one agent of an episode of verifiers becomes."""

from typing import Any, Final

from rollscope.importing.values import derived_id
from rollscope.importing.verifiers_traces import Timed, Trace
from rollscope.importing.writing import Domain
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["add_trace"]

_PHASE: Final = KIND_CODES[Kind.PHASE]
_AGENT: Final = SPAN_CODES["misc"]
_OK: Final = STATUS_CODES[Status.OK]
_ERROR: Final = STATUS_CODES[Status.ERROR]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_LOST: Final = STATUS_CODES[Status.LOST]
_NAME_BYTES: Final = 512
_REASON_BYTES: Final = 128


class _Tree:
    """Adds the rows of one agent, whose session has ended at a time or is open."""

    def __init__(
        self, domain: Domain, scope: ScopeRow, session_id: int, end_ns: int, number: int
    ) -> None:
        self._domain, self._scope = domain, scope
        self._session_id, self._end_ns = session_id, end_ns
        self.number = number

    def add(self, what: int, timed: Timed, parent_id: int, fields: dict[str, Any]) -> int:
        """Add a row, and give its id."""
        attrs, start_ns, end_ns = timed.attrs, timed.start_ns, timed.end_ns
        status = _OK
        if not end_ns:
            # The episode was over when it was written; what has no end then has lost it.
            status, end_ns = (_LOST, max(self._end_ns, start_ns)) if self._end_ns else (_OPEN, 0)
            if end_ns:
                attrs["end_guessed"] = True
        elif end_ns < start_ns:
            attrs["clock_suspect"], attrs["source_end_ns"], end_ns = True, end_ns, start_ns
        if timed.fault is not None:
            status = _ERROR if end_ns else _OPEN
            attrs.update(timed.fault.attrs())
            fields = {**fields, "reason": clean_text(timed.fault.type, _REASON_BYTES) or "error"}
        if self._domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        own_id = derived_id(self._session_id, self.number)
        self.number += 1
        name = clean_text(timed.name, _NAME_BYTES)
        row = (what, status, name, self._scope, own_id, parent_id, start_ns, end_ns)
        self._domain.add(Row(*row, fit_attrs(attrs), fields))
        return own_id


def add_trace(
    domain: Domain, scope: ScopeRow, session_id: int, trace: Trace, end_ns: int, number: int
) -> int:
    """Add a trace: a span named by its agent, the stages below it, and the calls in the agent's.

    Args:
        domain: Where to.
        scope: The session's.
        session_id: Whose trace it is.
        trace: What was read.
        end_ns: When the session ended; 0 if it is open.
        number: How many rows the session has already.

    Returns:
        How many it has then.
    """
    tree = _Tree(domain, scope, session_id, end_ns, number)
    if not trace.start_ns:
        return number
    attrs = {"source_trace_id": trace.source_id, "trainable": trace.is_trainable, "ok": trace.is_ok}
    # Under names of their own, so that nobody who adds up counts them twice.
    attrs |= trace.tokens.attrs("agent_tokens_")
    if trace.score.value is not None:
        attrs["agent_reward"] = trace.score.value
    fault = None if trace.is_ok else trace.fault
    if fault is not None and any(call.fault == fault for call in trace.calls):
        attrs["error.copied"] = True
    end = 0 if not end_ns else trace.end_ns
    whole = Timed(trace.name, trace.start_ns, end, {**trace.attrs, **attrs}, fault)
    root = tree.add(_AGENT, whole, session_id, {})
    caller = root
    for stage in trace.stages:
        own_id = tree.add(_PHASE, stage, root, {})
        caller = own_id if stage.name == "agent" else caller
    for call in trace.calls:
        tree.add(_PHASE, call, caller, {})
    return tree.number
