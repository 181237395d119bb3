"""What `rollscope show` prints."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rollscope.analysis.rows import SessionRow
from rollscope.analysis.wording import say_count, say_ns, say_share
from rollscope.answers.session import SessionAnswer, SpanDetail
from rollscope.model.kinds import Status
from rollscope.model.refs import span_hex
from rollscope.screens.plots import share_bar
from rollscope.screens.sessions import say_end, say_reason, say_versions
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen, clean, shorten
from rollscope.screens.words import (
    place_bar,
    say_clock,
    say_phase,
    say_reward,
    say_session,
)

__all__ = ["session_screen"]

_MOST_SPANS: Final = 40
_MOST_EVENTS: Final = 20
_MOST_SIBLINGS: Final = 16
_VALUE_CELLS: Final = 60
_WORTH_TELLING_NS: Final = 1_000_000
_SPAN_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("span", can_shrink=True)),
    (0, Column("at", "right")),
    (0, Column("took", "right")),
    (0, Column("")),
    (1, Column("", can_shrink=True)),
    (2, Column("attributes", can_shrink=True)),
)
_SIBLING_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("sibling", can_shrink=True)),
    (3, Column("try", "right")),
    (0, Column("ran", "right")),
    (0, Column("")),
    (0, Column("outcome")),
    (0, Column("reward", "right")),
    (2, Column("host", can_shrink=True)),
    (1, Column("id")),
)


def session_screen(answer: SessionAnswer, screen: Screen, *, is_whole: bool = False) -> str:
    """Put one session into words, tables and a time line.

    Args:
        answer: The session.
        screen: Where it is shown.
        is_whole: Whether every span is shown, however many.
    """
    sheet = Sheet(screen)
    row = answer.session
    sheet.say(_headline(answer), style="bold")
    for sentence in _facts(answer):
        sheet.say(sentence)
    if answer.stacks and row.end_ns is None:
        _show_stack(sheet, answer)
    _show_phases(sheet, answer)
    _show_spans(sheet, answer, None if is_whole else _MOST_SPANS)
    if row.attrs:
        sheet.heading("Attributes")
        sheet.say(_say_attrs(row.attrs), indent=2)
    if answer.events:
        _show_events(sheet, answer)
    _show_siblings(sheet, answer)
    if answer.stacks and row.end_ns is not None:
        _show_stack(sheet, answer)
    return sheet.text


def _headline(answer: SessionAnswer) -> str:
    row = answer.session
    ran = say_ns(answer.total_ns)
    if row.end_ns is None:
        return f"{say_session(row)} has been open for {ran}."
    if row.status is Status.LOST:
        return f"{say_session(row)} was lost after {ran}: {row.reason or 'nobody knows why'}."
    reason = f" ({say_reason(row)})" if say_reason(row) else ""
    reward = "" if row.reward is None else f", reward {say_reward(row.reward)}"
    return f"{say_session(row)} ran for {ran} and was {_became(row)}{reason}{reward}."


def _became(row: SessionRow) -> str:
    end = say_end(row)
    return {"timeout": "timed out", "no outcome": "left without an outcome"}.get(end, end)


def _facts(answer: SessionAnswer) -> list[str]:
    row = answer.session
    waited = ""
    if row.waited_ns is not None and row.waited_ns >= _WORTH_TELLING_NS:
        waited = f", after waiting {say_ns(row.waited_ns)} for a slot"
    begun = f"Started {say_clock(row.start_ns)}{waited}"
    attempt = f", try {row.attempt + 1}" if row.attempt else ""
    where = " / ".join(dict.fromkeys(part for part in (row.host, row.pool) if part))
    step = "no step" if row.step is None else f"step {row.step}"
    if row.consumed_step is not None:
        step += f", consumed by step {row.consumed_step}"
    sentences = [f"{begun}, on {where or 'an unknown host'}, for {step}{attempt}."]
    tokens = [
        f"{number:,} tokens {way}"
        for number, way in ((row.tokens_in, "in"), (row.tokens_out, "out"))
        if number is not None
    ]
    if row.turns is not None:
        tokens.append(say_count(row.turns, "turn"))
    if row.end_ns is None or row.reward is None:
        tokens.append("no reward yet" if row.end_ns is None else "no reward")
    lags = [
        f"{lag} at {moment}"
        for lag, moment in (
            (answer.lag_start, "its start"),
            (answer.lag_end, "its end"),
            (answer.lag_consume, "consumption"),
        )
        if lag is not None
    ]
    if say_versions(row):
        behind = f" (versions behind: {', '.join(lags)})" if lags else ""
        tokens.append(f"version {say_versions(row)}{behind}")
    return [*sentences, f"{', '.join(tokens)}; id {span_hex(row.span_id)}."]


def _show_phases(sheet: Sheet, answer: SessionAnswer) -> None:
    sheet.heading("Where its time went")
    parts = sorted(answer.phases.items(), key=lambda item: -item[1].share_ns)
    width = max(min(sheet.width - 50, 40), 8)
    rows = [
        [
            name,
            say_ns(phase.share_ns),
            say_share(phase.share_ns, answer.total_ns),
            share_bar(phase.share_ns, answer.total_ns, width, is_unicode=sheet.is_unicode),
            f"{phase.count} x" + _overlap(phase.union_ns, phase.sum_ns, phase.share_ns),
        ]
        for name, phase in parts
    ]
    rest = say_share(answer.other_ns, answer.total_ns)
    drawn = share_bar(answer.other_ns, answer.total_ns, width, is_unicode=sheet.is_unicode)
    rows.append(["other (in no phase)", say_ns(answer.other_ns), rest, drawn, ""])
    rows.append(["the whole session", say_ns(answer.total_ns), "100 %", "", ""])
    columns: tuple[RankedColumn, ...] = (
        (0, Column("", can_shrink=True)),
        (0, Column("", "right")),
        (0, Column("", "right")),
        (1, Column("")),
        (2, Column("", can_shrink=True)),
    )
    sheet.table(columns, rows, indent=2)


def _overlap(union_ns: int, sum_ns: int, share_ns: int) -> str:
    if sum_ns > union_ns:
        return f", {say_ns(sum_ns)} added up"
    return f", open {say_ns(union_ns)}" if union_ns > share_ns else ""


def _show_spans(sheet: Sheet, answer: SessionAnswer, most: int | None) -> None:
    if not answer.spans:
        return
    sheet.heading(f"What it did, on a line of {say_ns(answer.total_ns)}")
    shown = answer.spans if most is None else answer.spans[:most]
    width = max(min(sheet.width // 4, 48), 12)
    sheet.table(_SPAN_COLUMNS, [_span_cells(one, answer, sheet, width) for one in shown])
    if len(shown) < len(answer.spans):
        sheet.say(f"{len(answer.spans) - len(shown):,} more spans; --all shows them.")


def _span_cells(one: SpanDetail, answer: SessionAnswer, sheet: Sheet, width: int) -> list[str]:
    span, start_ns = one.span, answer.session.start_ns
    end_ns = answer.now_ns if span.end_ns is None else span.end_ns
    whole = answer.total_ns or 1
    low, high = (span.start_ns - start_ns) / whole, (end_ns - start_ns) / whole
    ended = "" if span.status is Status.OK else str(span.status)
    known = {span.detail, str(span.detail)}
    attrs = {key: value for key, value in one.attrs.items() if value not in known}
    return [
        "  " * one.depth + say_phase(span.name, span.detail),
        f"+{say_ns(span.start_ns - start_ns)}",
        say_ns(end_ns - span.start_ns),
        place_bar(low, high, width, is_unicode=sheet.is_unicode),
        f"{ended}: {span.reason}" if ended and span.reason else ended,
        _say_attrs(attrs),
    ]


def _say_attrs(attrs: Mapping[str, Any]) -> str:
    return ", ".join(f"{clean(key)}={_say_value(value)}" for key, value in attrs.items())


def _say_value(value: Any) -> str:  # noqa: ANN401  (whatever an attribute holds)
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shorten(clean(text), _VALUE_CELLS)


def _show_events(sheet: Sheet, answer: SessionAnswer) -> None:
    sheet.heading("Events")
    rows = [
        [f"+{say_ns(event.time_ns - answer.session.start_ns)}", event.name, _say_attrs(event.attrs)]
        for event in answer.events[:_MOST_EVENTS]
    ]
    columns: tuple[RankedColumn, ...] = (
        (0, Column("", "right")),
        (0, Column("", can_shrink=True)),
        (1, Column("", can_shrink=True)),
    )
    sheet.table(columns, rows, indent=2)
    if len(answer.events) > _MOST_EVENTS:
        sheet.say(
            f"{len(answer.events) - _MOST_EVENTS:,} more events; `rollscope show --json` gives all."
        )


def _show_stack(sheet: Sheet, answer: SessionAnswer) -> None:
    stack = answer.stacks[-1]
    spans = {one.span.span_id: one.span for one in answer.spans}
    span = spans.get(stack.span_id)
    name = "the session" if span is None else say_phase(span.name, span.detail)
    at = f"+{say_ns(stack.time_ns - answer.session.start_ns)}"
    if answer.session.end_ns is None:
        sheet.heading(f"Where {name} waits, seen {say_ns(answer.now_ns - stack.time_ns)} ago")
    else:
        sheet.heading(f"Where {name} waited at {at}, the last time it was looked at")
    for depth, frame in enumerate(stack.frames):
        sheet.line(f"{'  ' * min(depth + 1, 8)}{frame}")


def _show_siblings(sheet: Sheet, answer: SessionAnswer) -> None:
    if not answer.siblings:
        return
    group = sorted(
        [answer.session, *answer.siblings], key=lambda row: (row.sample or 0, row.attempt)
    )
    sheet.heading(f"Its group: {say_count(len(group), 'session')} of this task and step")
    longest = max(_ran(row, answer.now_ns) for row in group) or 1
    rows = [
        [
            ("> " if row.span_id == answer.session.span_id else "  ") + say_session(row),
            str(row.attempt + 1) if row.attempt else "",
            say_ns(_ran(row, answer.now_ns)),
            share_bar(_ran(row, answer.now_ns), longest, 12, is_unicode=sheet.is_unicode),
            say_end(row),
            say_reward(row.reward),
            row.host,
            span_hex(row.span_id),
        ]
        for row in group[:_MOST_SIBLINGS]
    ]
    sheet.table(_SIBLING_COLUMNS, rows)
    if len(group) > _MOST_SIBLINGS:
        sheet.say(f"{len(group) - _MOST_SIBLINGS} more; `rollscope show --json` gives all.")


def _ran(row: SessionRow, now_ns: int) -> int:
    return (now_ns if row.end_ns is None else row.end_ns) - row.start_ns
