"""What is allowed of a run under fire, and the table that says whether it was kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tests.chaos.collection import Result
    from tests.chaos.stopwatch import Calls

__all__ = ["Row", "judge", "print_rows"]

_WRITER_MB: Final = 160.0
"""Python with our recorder takes some 40; the recorder's own bound is 64."""
_SERVER_MB: Final = 1024.0
_MOST_MS: Final = 1.0
_OURS: Final = "kept_waiting_ms"
_FIGURES: Final = {
    "wall": "took",
    "blocked": "were blocked",
    "taken": "lost their core to the host",
}
_LEAST_RATE: Final = 0.9
"""Writers that were held up by the machine have not tested much."""


class Row(NamedTuple):
    """One thing that was looked at."""

    what: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether it is as it should be; what has no limit only explains the rest."""
        if self.most is not None and not self.value <= self.most:
            return False
        return self.least is None or self.value >= self.least


def judge(result: Result) -> list[Row]:
    """Hold what came of it against what is allowed."""
    plan, found, written = result.plan, result.found, result.written
    spans = sum(each.spans for each in written)
    rate = sum(each.spans / each.seconds for each in written)
    return [
        Row("spans recorded", spans, least=1),
        Row("... a second", rate, least=_LEAST_RATE * plan.writers * plan.rate),
        Row("spans in the store", found.spans, least=spans, most=spans),
        Row("missing", found.missing, most=0),
        Row("doubled", found.doubled, most=0),
        Row("that nobody recorded", found.strange, most=0),
        Row("under a wrong parent", found.misplaced, most=0),
        Row("never ended", found.not_ended, most=0),
        Row("dropped", found.dropped, most=0),
        Row("frames missing", found.missing_frames, most=0),
        Row("frames doubled in logs", found.doubled_frames, most=0),
        Row("damaged bytes in logs", found.damaged_bytes, most=0),
        Row("problems of the store", len(found.problems), most=0),
        Row(
            "writers that had not delivered all",
            sum(not each.is_delivered for each in written),
            most=0,
        ),
        Row("spool, peak", result.spool_peak_mb, "MiB", most=plan.spool_mb),
        Row("spool, at the end", result.spool_left_bytes, "bytes", most=0),
        Row("memory of a writer, peak", result.peak_mb["writer"], "MiB", most=_WRITER_MB),
        Row("memory of the server, peak", result.peak_mb["server"], "MiB", most=_SERVER_MB),
        *_judge_calls(result),
        Row("answers to the page", result.answers, least=1),
        Row("... that were faults", len(result.faults), most=0),
        Row("all on the page after the end", result.visible_s, "s", most=30.0),
        Row("exit code of the server", result.server_exit, most=0),
    ]


def _judge_calls(result: Result) -> list[Row]:
    """Hold what calls took against what it may be; the others show what the machine adds to all."""
    ours = [each.span_calls for each in result.written]
    others = {
        "into a file": [result.beside.span_calls],
        "that record nothing": [each.spin_calls for each in result.written],
        "in a program without a recorder": [result.floor.span_calls, result.floor.spin_calls],
    }
    rows = [Row("longest call: kept waiting by us", _longest(ours, _OURS), "ms", most=_MOST_MS)]
    rows += [
        Row(f"... calls {title}: the same", _longest(calls, _OURS), "ms")
        for title, calls in others.items()
    ]
    collections = [each.collection_ms for each in result.written]
    rows.append(Row("longest garbage collection in our threads", max(collections), "ms"))
    for title, calls in {"over HTTP": ours, **others}.items():
        rows += _rows_of_calls(title, calls)
    return rows


def _rows_of_calls(title: str, calls: list[Calls]) -> list[Row]:
    """Say how many calls took long and how long, in all and for each reason."""
    rows = [Row(f"calls {title}", sum(each.count for each in calls))]
    for figure, why in _FIGURES.items():
        many = _of_a_million(calls, f"{figure}_count")
        rows.append(Row(f"... {why} over 1 ms, of a million", many))
        rows.append(Row(f"... {why}, longest", _longest(calls, f"{figure}_ms"), "ms"))
        if figure == "blocked":
            most = _longest(calls, "others_ran_ms")
            rows.append(Row("... while other threads of theirs ran, at most", most, "ms"))
    return rows


def _longest(calls: list[Calls], figure: str) -> float:
    return max(float(getattr(each, figure)) for each in calls)


def _of_a_million(calls: list[Calls], figure: str) -> float:
    count = sum(each.count for each in calls)
    return sum(int(getattr(each, figure)) for each in calls) / count * 1e6 if count else 0.0


def print_rows(rows: list[Row]) -> None:
    """Print the table."""
    width = max(len(row.what) for row in rows)
    for row in rows:
        value = f"{row.value:,.{0 if row.value == int(row.value) else 2}f} {row.unit}".rstrip()
        wanted = [f"<= {row.most:,g}"] if row.most is not None else []
        wanted += [f">= {row.least:,g}"] if row.least is not None else []
        verdict = ("" if not wanted else "met") if row.is_met else "MISSED"
        line = f"{row.what:<{width}}  {value:>16}  {' and '.join(wanted):<24}  {verdict}"
        sys.stdout.write(line.rstrip() + "\n")
