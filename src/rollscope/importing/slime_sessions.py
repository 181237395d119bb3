"""What a row of slime's timeline cache becomes: a verdict, attributes, and spans of its items."""

from typing import Any, Final, NamedTuple

from rollscope.importing.accounts import Report
from rollscope.importing.slime_items import Item
from rollscope.importing.statuses import read_status
from rollscope.importing.values import derived_id
from rollscope.importing.writing import Domain
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Kind,
    Outcome,
    Status,
)
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import first_number, whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["Verdict", "add_items", "judge_row", "row_attrs"]

_PHASE: Final = KIND_CODES[Kind.PHASE]
_COMPUTE: Final = SPAN_CODES["compute"]
_MISC: Final = SPAN_CODES["misc"]
_OK: Final = STATUS_CODES[Status.OK]
_ERROR: Final = STATUS_CODES[Status.ERROR]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_LOST: Final = STATUS_CODES[Status.LOST]
_NAME_BYTES: Final = 512
_REASON_BYTES: Final = 128
_TRUNCATED: Final = "truncated"
"""slime's word for a sample that ran to the most tokens it may have: it has ended all right."""
_KNOWN: Final = frozenset(
    (
        *("row_id", "sample_index", "group_index", "source", "status", "label", "reward"),
        *("trace_id", "attempt", "start", "end", "duration", "items", "lane_count", "item_count"),
        *("closed_span_count", "open_span_count", "point_event_count", "orphan_count"),
        *("total_response_length", "max_response_length"),
    )
)


class Verdict(NamedTuple):
    """How a sample ended."""

    status: int
    outcome: Outcome | None
    reason: str = ""


def judge_row(row: dict[str, Any], items: list[Item], report: Report) -> Verdict:
    """Say how a sample ended; an error that came out of it counts more than its word."""
    word = row.get("status")
    # Some dumps hold the name of the constant.
    plain = word.rpartition(".")[2] if isinstance(word, str) else word
    has_open = any(not item.end_ns for item in items)
    found = read_status(plain, has_end=not has_open)
    is_known = found.is_known or str(plain).lower() == _TRUNCATED
    if not is_known:
        report.wonder(word)
    fault = _root_error(items)
    if found.status == _OPEN and plain is not None and not has_open and not is_known:
        return Verdict(_OK, None)
    if fault is not None and found.status in (_OK, _ERROR):
        return Verdict(_ERROR, Outcome.FAILED, clean_text(fault[0], _REASON_BYTES) or "failed")
    reason = "failed" if found.outcome is Outcome.FAILED else ""
    return Verdict(found.status, found.outcome, reason)


def _root_error(items: list[Item]) -> tuple[str, str] | None:
    return next((item.error for item in items if item.is_root and item.error), None)


def row_attrs(row: dict[str, Any], items: list[Item], report: Report) -> dict[str, Any]:
    """Give the attributes of the session."""
    trace_id = row.get("trace_id")
    attrs = {key: value for key, value in row.items() if key not in _KNOWN and value is not None}
    attrs["session_id"] = str(trace_id if trace_id is not None else row.get("row_id"))
    for key, name in (("source", "family"), ("status", "source_status")):
        if isinstance(row.get(key), str):
            attrs[name] = row[key]
    attempt = whole_number(row.get("attempt"))
    if attempt is not None:
        attrs["attempt"] = attempt
    if isinstance(row.get("label"), str):
        attrs["label_chars"] = len(row["label"])
    length = whole_number(row.get("total_response_length"))
    if length and not any("tokens_out" in item.attrs for item in items):
        attrs["tokens_out"] = length
    fault = _root_error(items)
    if fault is not None:
        attrs["error.type"], attrs["error.message"] = fault
        if any(item.error == fault for item in items if not item.is_root):
            attrs["error.copied"] = True
    attrs.update(_reward(row.get("reward"), report))
    return attrs


def _reward(told: object, report: Report) -> dict[str, Any]:
    """Read a reward; of an object, the part that is called so."""
    if not isinstance(told, dict):
        number = first_number(told)
        return {} if number is None else {"reward": number}
    attrs: dict[str, Any] = {"rewards": told}
    for key in ("reward", "score"):
        if (number := first_number(told.get(key))) is not None:
            report.guess("reward out of an object")
            return {**attrs, "reward": number}
    return attrs


def add_items(
    domain: Domain, scope: ScopeRow, session_id: int, items: list[Item], end_ns: int
) -> None:
    """Add the items of a sample whose session has ended at a time, or is open."""
    ids = {
        item.source_id: derived_id(session_id, number)
        for number, item in enumerate(items)
        if item.source_id
    }
    # One span over all is the session itself; several are its attempts.
    roots = [item.source_id for item in items if item.is_root and not item.parent]
    whole = roots[0] if len(roots) == 1 and roots[0] else None
    if whole is not None:
        ids[whole] = session_id
    parents = {item.source_id: item.parent for item in items if item.source_id}
    told = {(item.parent, item.error) for item in items if item.error}
    for number, item in enumerate(items):
        if whole is not None and item.source_id == whole:
            continue
        is_top = not item.parent or item.parent in roots
        # An error that was passed on upwards came from where it is told first.
        is_copy = bool(item.source_id) and (item.source_id, item.error) in told
        parent_id = ids.get(item.parent, session_id) if _is_tree(item, parents) else session_id
        own_id = derived_id(session_id, number)
        _add(domain, scope, item, own_id, parent_id, end_ns, is_top=is_top, is_copy=is_copy)


def _is_tree(item: Item, parents: dict[str, str]) -> bool:
    """Say whether its parents end somewhere, instead of going round."""
    seen, at = {item.source_id}, item.parent
    while at in parents:
        if at in seen:
            return False
        seen.add(at)
        at = parents[at]
    return True


def _add(
    domain: Domain,
    scope: ScopeRow,
    item: Item,
    own_id: int,
    parent_id: int,
    session_end_ns: int,
    *,
    is_top: bool,
    is_copy: bool,
) -> None:
    attrs, end_ns, status = dict(item.attrs), item.end_ns, _OK
    name = "orphan_end" if item.is_orphan else item.phase or item.name
    if name != item.name:
        attrs["source_name"] = item.name
    if not end_ns:
        status, end_ns = (_OPEN, 0)
        if session_end_ns:
            status, end_ns = _LOST, max(session_end_ns, item.start_ns)
            attrs["end_guessed"] = True
    elif end_ns < item.start_ns:
        attrs["clock_suspect"], attrs["source_end_ns"], end_ns = True, end_ns, item.start_ns
    fields: dict[str, Any] = {}
    if is_copy:
        attrs["error.copied"] = True
    if item.error is not None and not item.is_instant and status == _OK:
        status = _ERROR
        fields["reason"] = clean_text(item.error[0], _REASON_BYTES) or "error"
    if domain.account.clock == "unanchored":
        attrs["clock"] = "unanchored"
    what = _MISC if item.is_root else _COMPUTE
    if item.is_instant:
        what = EVENT_CODE
    elif not item.is_root and (item.phase or is_top):
        what = _PHASE
    row = (what, status, clean_text(name, _NAME_BYTES), scope, own_id, parent_id)
    domain.add(Row(*row, item.start_ns, end_ns, fit_attrs(attrs), fields))
