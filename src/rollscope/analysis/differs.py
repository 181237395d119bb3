"""What is different about some sessions: the attributes in which they stand out from the rest.

Every attribute is tried, and many tries find something by chance. So all tests made are corrected
together, and what remains has to be large as well as sure.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from rollscope.analysis.alike import fold_alike
from rollscope.analysis.columntests import Difference, say_difference, try_column
from rollscope.analysis.details import DetailLabels
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow
from rollscope.analysis.sessioncolumns import session_columns
from rollscope.analysis.statistics import benjamini_hochberg, cliffs_delta

__all__ = ["Differences", "PhaseDifference", "differences"]

_NEEDED_CHOSEN = 8
_NEEDED_REST = 30
_LARGEST_Q = 0.05
_SMALLEST_EFFECT = 0.15
_FEW_TASKS = 5
_WHOLE = "session"
"""The name under which phase times may hold a session's whole time."""


class PhaseDifference(msgspec.Struct, frozen=True):
    """How long the chosen sessions and the rest spent in one phase."""

    name: str
    chosen_p50_ns: int
    rest_p50_ns: int
    effect: float
    """Cliff's delta."""


class Differences(msgspec.Struct, kw_only=True):
    """What is different about some sessions."""

    chosen_count: int
    rest_count: int
    is_enough: bool
    columns: int
    """Attributes tested."""
    tests: int
    """Tests made; an attribute has one for each value with enough support."""
    is_few_tasks: bool
    """Fewer than five tasks among the chosen, and samples of one task are not independent."""
    rows: list[Difference]
    phases: list[PhaseDifference]
    """Where the time went; not tested, since time is mostly what they were chosen by."""
    text: str


def differences(
    chosen: Sequence[SessionRow],
    rest: Sequence[SessionRow],
    *,
    excluded: Collection[str] = (),
    details: DetailLabels | None = None,
    phase_ns: Mapping[int, Mapping[str, int]] | None = None,
) -> Differences:
    """Find the attributes in which the chosen sessions stand out from the rest.

    Args:
        chosen: The sessions asked about.
        rest: The other sessions of the same scope.
        excluded: Attributes and phases that they were chosen by.
        details: What the phases of each session were of, as `detail_labels` gives it.
        phase_ns: The union of each phase, by session and phase.
    """
    is_enough = len(chosen) >= _NEEDED_CHOSEN and len(rest) >= _NEEDED_REST
    columns = session_columns([*chosen, *rest], details or {}) if is_enough else []
    tested = [
        tests
        for column in columns
        if column.name not in excluded and (tests := try_column(column, len(chosen), len(rest)))
    ]
    tests = [test for tests in tested for test in tests]
    for test, q in zip(tests, benjamini_hochberg([t.row.p for t in tests]), strict=True):
        test.row.q = q
    rows = fold_alike([t for t in tests if t.row.q <= _LARGEST_Q and _is_large(t.row)])
    for row in rows:
        row.text = say_difference(row)
    tasks = {session.task_key for session in chosen} - {None}
    return Differences(
        chosen_count=len(chosen),
        rest_count=len(rest),
        is_enough=is_enough,
        columns=len(tested),
        tests=len(tests),
        is_few_tasks=0 < len(tasks) < _FEW_TASKS,
        rows=rows,
        phases=_phases(chosen, rest, phase_ns or {}, excluded) if is_enough else [],
        text=_summary(is_enough, rows, len(tested), len(chosen), len(rest)),
    )


def _is_large(row: Difference) -> bool:
    return abs(row.effect) >= _SMALLEST_EFFECT


def _phases(
    chosen: Sequence[SessionRow],
    rest: Sequence[SessionRow],
    phase_ns: Mapping[int, Mapping[str, int]],
    excluded: Collection[str],
) -> list[PhaseDifference]:
    first = [phase_ns[row.span_id] for row in chosen if row.span_id in phase_ns]
    second = [phase_ns[row.span_id] for row in rest if row.span_id in phase_ns]
    if not first or not second:
        return []
    names = {name for times in (*first, *second) for name in times}
    left_out = {*excluded, *([_WHOLE] if names.intersection(excluded) else [])}
    phases = []
    for name in sorted(names - left_out):
        a = [times.get(name, 0) for times in first]
        b = [times.get(name, 0) for times in second]
        phases.append(PhaseDifference(name, median(a), median(b), cliffs_delta(a, b)))
    return sorted(phases, key=lambda phase: -abs(phase.chosen_p50_ns - phase.rest_p50_ns))


def _summary(
    is_enough: bool, rows: Sequence[Difference], columns: int, chosen: int, rest: int
) -> str:
    if not is_enough:
        return (
            f"Too few to tell: {chosen} against {rest}; "
            f"it takes at least {_NEEDED_CHOSEN} against {_NEEDED_REST}."
        )
    if not rows:
        return f"Nothing distinguishes them ({columns} attributes tested)."
    return f"{rows[0].text}."
