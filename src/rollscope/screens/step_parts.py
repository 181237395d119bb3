"""The parts of a step's story below its first screen."""

from typing import Final

from rollscope.analysis.eta import Eta, Range
from rollscope.analysis.replicas import ReplicaSplit
from rollscope.analysis.staleness import STALE_AT, LagHistogram, Staleness
from rollscope.analysis.steps import StepSummary
from rollscope.analysis.sync import SyncSplit
from rollscope.analysis.waste import Waste
from rollscope.analysis.whatif import WhatIf
from rollscope.analysis.wording import say_count, say_ns, say_share, say_whole
from rollscope.screens.plots import share_bar
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column
from rollscope.screens.words import (
    say_clock,
    say_maybe_ns,
    say_number,
    say_signed,
)

__all__ = [
    "show_eta",
    "show_replicas",
    "show_staleness",
    "show_sync",
    "show_waste",
    "show_what_if",
]

_BAR: Final = 12
_MOST_HOLDERS: Final = 10


def show_eta(sheet: Sheet, eta: Eta, now_ns: int) -> None:
    """Say when a running step will end."""
    flight = f"{eta.open:,} in flight" + (f", {eta.waiting:,} to start" if eta.waiting else "")
    if eta.step_end is not None:
        span = _from_now(eta.step_end, now_ns)
        sheet.say(
            f"It should end in {span}, about {say_clock(eta.step_end.p50_ns)} ({flight}; from "
            f"{say_count(eta.known, 'earlier session')})."
        )
    else:
        sheet.say(f"When it ends cannot be told yet: {flight}.")
    if eta.outliers:
        least = "" if eta.at_least_ns is None else f"at least {say_whole(eta.at_least_ns)} more; "
        are = "session is" if len(eta.outliers) == 1 else "sessions are"
        sheet.say(
            f"Left out of that: {least}{len(eta.outliers)} {are} older than anything seen "
            "(rollscope stuck)."
        )


def _from_now(end: Range, now_ns: int) -> str:
    low, high = max(end.p10_ns - now_ns, 0), max(end.p90_ns - now_ns, 0)
    return f"{say_whole(low)} to {say_whole(high)}" if low != high else say_whole(low)


def show_waste(sheet: Sheet, waste: Waste) -> None:
    """Say what was thrown away, and whether the choice is biased."""
    sheet.heading("Thrown away")
    if not waste.count:
        sheet.say("Nothing so far.", indent=2)
    else:
        sheet.say(
            f"{say_count(waste.count, 'session')} of {waste.all_count:,} that are over: "
            f"{say_share(waste.share)} of slot time ({say_ns(waste.slot_ns)}), "
            f"{waste.tokens:,} tokens.",
            indent=2,
        )
    rows = [
        [
            row.outcome + (" (tried again)" if row.is_earlier_attempt else ""),
            row.reason or "",
            f"{row.count:,}",
            say_ns(row.slot_ns),
            say_share(row.share),
            share_bar(row.share, 1, _BAR, is_unicode=sheet.is_unicode),
        ]
        for row in waste.rows[:_MOST_HOLDERS]
    ]
    columns: tuple[RankedColumn, ...] = (
        (0, Column("outcome")),
        (0, Column("reason", can_shrink=True)),
        (0, Column("count", "right")),
        (0, Column("slot time", "right")),
        (0, Column("share", "right")),
        (1, Column("")),
    )
    sheet.table(columns, rows, indent=2)
    if waste.pending:
        sheet.say(f"{say_count(waste.pending, 'session')} may still be consumed.", indent=2)
    for one in waste.selection:
        if one.is_flagged and one.distance is not None and one.limit is not None:
            sheet.say(
                f"Training sees a biased choice by {one.measure}: the distance between consumed "
                f"and discarded sessions is {one.distance:.2f}; chance stays below "
                f"{one.limit:.2f}.",
                indent=2,
            )


def show_staleness(sheet: Sheet, staleness: Staleness) -> None:
    """Say how many versions behind sessions were."""
    sheet.heading("Staleness, in versions behind")
    if not staleness.is_published:
        sheet.say("No published version is recorded, so no lag can be told.", indent=2)
        return
    named = (
        ("at start", staleness.at_start),
        ("at end", staleness.at_end),
        ("at consumption", staleness.at_consume),
        ("added in flight", staleness.in_flight),
        ("added in the queue", staleness.in_queue),
    )
    rows = [[name, *_lag_cells(lags)] for name, lags in named if lags.count]
    columns: tuple[RankedColumn, ...] = (
        (0, Column("")),
        (0, Column("n", "right")),
        (0, Column("p50", "right")),
        (0, Column("p95", "right")),
        (0, Column("max", "right")),
        (1, Column("sessions by lag", can_shrink=True)),
    )
    sheet.table(columns, rows, indent=2)
    if staleness.without_version:
        number = say_count(staleness.without_version, "session")
        sheet.say(f"{number} without a version are not counted.", indent=2)
    if staleness.bound is not None:
        sheet.say(f"{staleness.beyond_bound:,} beyond the bound of {staleness.bound}.", indent=2)
    if staleness.stale_count and staleness.phases:
        one = staleness.phases[0]
        sheet.say(
            f"The {say_count(staleness.stale_count, 'session')} at {STALE_AT} or more spent "
            f"{say_maybe_ns(one.stale_p50_ns)} in {one.name} (median), the rest "
            f"{say_maybe_ns(one.rest_p50_ns)}.",
            indent=2,
        )


def _lag_cells(lags: LagHistogram) -> list[str]:
    bins = ", ".join(f"{lag}: {count:,}" for lag, count in lags.bins[:_MOST_HOLDERS])
    known = (lags.p50, lags.p95, lags.max)
    return [f"{lags.count:,}", *("-" if lag is None else str(lag) for lag in known), bins]


def show_sync(sheet: Sheet, sync: SyncSplit) -> None:
    """Say how long weight sync took and what it held up."""
    sheet.heading("Weight sync")
    if not sync.total_ns:
        sheet.say("None is recorded within the step.", indent=2)
        return
    parts = (
        ("pause", sync.pause_ns),
        ("transfer", sync.transfer_ns),
        ("resume", sync.resume_ns),
        ("not split", sync.rest_ns),
    )
    told = ", ".join(f"{name} {say_ns(ns)}" for name, ns in parts if ns)
    slowest = f"; slowest {sync.slowest}" if sync.slowest else ""
    sheet.say(
        f"{say_ns(sync.total_ns)}: {told}{slowest}. {say_ns(sync.blocked_ns)} of slot time stood "
        f"idle for it, {say_ns(sync.in_flight_ns)} was in flight meanwhile.",
        indent=2,
    )


def show_replicas(sheet: Sheet, split: ReplicaSplit) -> None:
    """Say how evenly the work was spread."""
    if not split.replicas:
        return
    sheet.heading(f"Replicas: the busiest has {split.imbalance:.2f} times the mean")
    rows = [
        [
            one.pool or "(unnamed)",
            f"{one.sessions:,}",
            say_share(one.busy_share),
            share_bar(one.busy_share, 1, _BAR, is_unicode=sheet.is_unicode),
            say_number(one.tokens_per_s or None, 0),
            "-" if one.last_end_ns is None else say_clock(one.last_end_ns),
        ]
        for one in sorted(split.replicas, key=lambda one: -one.busy_share)
    ]
    columns: tuple[RankedColumn, ...] = (
        (0, Column("replica", can_shrink=True)),
        (0, Column("sessions", "right")),
        (0, Column("busy", "right")),
        (1, Column("")),
        (0, Column("tok/s", "right")),
        (0, Column("last end", "right")),
    )
    sheet.table(columns, rows, indent=2)


def show_what_if(sheet: Sheet, what_if: WhatIf, summary: StepSummary) -> None:
    """Say what more or fewer slots would have done."""
    sheet.heading("What if there had been more slots, or fewer?")
    if what_if.cannot_tell:
        sheet.say(
            "Cannot be told: a replay on the same slots does not give the same time, or sessions "
            "have not ended.",
            indent=2,
        )
        return
    rows = [
        [
            f"x {replay.factor:g}",
            f"{replay.slots:,}",
            say_ns(replay.wall_ns),
            say_signed(replay.wall_ns - summary.wall_ns),
            say_share(replay.use),
        ]
        for replay in what_if.replays
    ]
    columns: tuple[RankedColumn, ...] = tuple(
        (0, Column(head, "right")) for head in ("", "slots", "wall", "change", "used")
    )
    sheet.table(columns, rows, indent=2)
    sheet.say("If every session took as long as it did.", indent=2)
