"""Rules on how far the rest can be trusted."""

from collections.abc import Iterable
from typing import Final

from rollscope.analysis.rows import ProcessRow, StepFacts
from rollscope.analysis.rules.case import Case, Evidence, Finding
from rollscope.analysis.wording import say_count, say_names, say_ns

__all__ = ["find_clock", "find_data"]

_CLOCK_OFF_NS: Final = 50_000_000


def find_data(case: Case) -> Finding | None:
    """Dropped records, or processes that died or fell silent, touch the step."""
    touching = [process for process in case.facts.processes if _touches(process, case.facts)]
    dead = [process for process in touching if process.status == "dead"]
    dead = [process for process in dead if process.last_seen_ns <= case.facts.end_ns]
    dropped = [process for process in touching if process.dropped]
    silent = [process for process in touching if process.status == "silent"]
    said = []
    if dropped:
        count = sum(process.dropped for process in dropped)
        said.append(f"{say_count(count, 'record')} dropped on {say_names(_places(dropped))}")
    if dead:
        said.append(f"{say_names(process.title for process in dead)} died")
    if silent:
        verb = "is" if len(silent) == 1 else "are"
        said.append(f"{say_names(process.title for process in silent)} {verb} silent")
    if not said:
        return None
    first = (dropped or dead or silent)[0]
    return Finding(
        rule="data",
        stake_ns=0,
        sentence=f"Incomplete: {'; '.join(said)}.",
        evidence=Evidence(process=first.process, host=first.host or None),
        try_next=_next_after(dropped=bool(dropped), dead=bool(dead)),
    )


def _next_after(*, dropped: bool, dead: bool) -> str:
    if dropped:
        return "Raise the buffer's limit or record fewer spans."
    if dead:
        return "See what ended it: its own output, and `dmesg` for the kernel's memory killer."
    return "See whether the process still runs."


def find_clock(case: Case) -> Finding | None:
    """A host's times had to be moved by more than 50 ms, or still do not fit."""
    touching = [process for process in case.facts.processes if _touches(process, case.facts)]
    moved = [process for process in touching if abs(process.offset_ns) > _CLOCK_OFF_NS]
    if moved:
        worst = max(moved, key=lambda process: abs(process.offset_ns))
        # Times of a clock that is ahead are moved back.
        side = "ahead" if worst.offset_ns < 0 else "behind"
        place = worst.host or worst.title
        off_by = say_ns(abs(worst.offset_ns))
        sentence = f"{place}'s clock is {off_by} {side}; its times were moved."
        evidence = Evidence(process=worst.process, host=worst.host or None)
    else:
        parents = {row.span_id: row for row in (*case.facts.trainer, case.facts.span)}
        early = [
            row
            for row in case.facts.trainer
            if (parent := parents.get(row.parent_id or 0)) is not None
            and parent.process != row.process
            and parent.start_ns - row.start_ns > _CLOCK_OFF_NS
        ]
        if not early:
            return None
        sentence = f"{say_count(len(early), 'span')} began before the span around it did."
        evidence = Evidence(process=early[0].process)
    return Finding(
        rule="clock",
        stake_ns=0,
        sentence=sentence,
        evidence=evidence,
        try_next="Let the hosts keep time by NTP or chrony.",
    )


def _touches(process: ProcessRow, facts: StepFacts) -> bool:
    return process.started_ns < facts.end_ns and process.last_seen_ns >= facts.start_ns


def _places(processes: Iterable[ProcessRow]) -> list[str]:
    return sorted({process.host or process.title for process in processes})
