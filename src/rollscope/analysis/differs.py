"""What is different about some sessions: the attributes in which they stand out from the rest.

Every attribute is tried, and many tries find something by chance. So all tests made are corrected
together, and what remains has to be large as well as sure.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import correlation
from typing import Any

import msgspec

from rollscope.analysis.details import DetailLabels
from rollscope.analysis.ranks import median, nearest_rank
from rollscope.analysis.rows import SessionRow
from rollscope.analysis.statistics import (
    average_ranks,
    benjamini_hochberg,
    cliffs_delta,
    fisher_exact,
    mann_whitney,
)
from rollscope.analysis.wording import say_ns, say_share

__all__ = ["Difference", "Differences", "PhaseDifference", "differences"]

_NEEDED_CHOSEN = 8
_NEEDED_REST = 30
_LEAST_SUPPORT = 5
_LEAST_SUPPORT_SHARE = 0.1
_MOST_VALUES = 200
_LARGEST_Q = 0.05
_SMALLEST_EFFECT = 0.15
_SMALLEST_Q = 1e-99
"""Below this the approximations behind it say no more, and rounding makes it zero."""
_ALIKE = 0.95
_FEW_TASKS = 5
_LABELS = (str, bool)
_NUMBERS = (int, float)
_PLAIN = (str, int, float)
_NO_LABEL: frozenset[str] = frozenset()
_NO_DETAILS: Mapping[str, frozenset[str]] = {}
_WHOLE = "session"
"""The name under which phase times may hold a session's whole time."""


class Difference(msgspec.Struct, kw_only=True):
    """One attribute in which the chosen sessions stand out."""

    column: str
    value: str | None
    """Which value they share; None where a number tends to be larger or smaller."""
    chosen: float
    """Share of the chosen with the value, or the median of their numbers."""
    rest: float
    chosen_count: int
    """Chosen sessions that the comparison rests on."""
    rest_count: int
    effect: float
    """Difference of the shares, or Cliff's delta."""
    p: float
    q: float
    alike: list[str] = []
    """Other attributes that split the sessions in the same way."""
    text: str = ""


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


class _Column(msgspec.Struct):
    """One attribute of all sessions, the chosen ones first."""

    name: str
    labels: list[frozenset[str]] | None = None
    numbers: list[float | None] | None = None


class _Test(msgspec.Struct):
    row: Difference
    column: _Column

    def members(self) -> int:
        """Give the sessions with the value as a number, one bit for each session."""
        labels, value = self.column.labels or [], self.row.value
        return int("".join("1" if value in of_session else "0" for of_session in labels), 2)


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
    columns = _columns([*chosen, *rest], details or {}) if is_enough else []
    tested = [
        tests
        for column in columns
        if column.name not in excluded and (tests := _test(column, len(chosen), len(rest)))
    ]
    tests = [test for tests in tested for test in tests]
    for test, q in zip(tests, benjamini_hochberg([t.row.p for t in tests]), strict=True):
        test.row.q = q
    rows = _fold([t for t in tests if t.row.q <= _LARGEST_Q and _is_large(t.row)])
    for row in rows:
        row.text = _say(row)
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


def _columns(sessions: Sequence[SessionRow], details: DetailLabels) -> list[_Column]:
    columns = [
        _label_column("host", [row.host or None for row in sessions]),
        _label_column("pool", [row.pool or None for row in sessions]),
        _label_column("task", [row.task_key for row in sessions]),
        _label_column("family", [row.family for row in sessions]),
        _label_column("group", [row.group for row in sessions]),
        _label_column("step", [row.step for row in sessions]),
        _label_column("version", [row.version_start for row in sessions]),
        _label_column("attempt", [row.attempt for row in sessions]),
        _label_column("outcome", [row.outcome for row in sessions]),
        _label_column("reason", [row.reason for row in sessions]),
        _Column("waited", numbers=[row.waited_ns for row in sessions]),
        _Column("turns", numbers=[row.turns for row in sessions]),
        _Column("tokens_in", numbers=[row.tokens_in for row in sessions]),
        _Column("tokens", numbers=[row.tokens_out for row in sessions]),
        _Column("reward", numbers=[row.reward for row in sessions]),
    ]
    columns.extend(_detail_columns(sessions, details))
    columns.extend(
        _attribute_column(name, [row.attrs.get(name) for row in sessions])
        for name in sorted({name for row in sessions for name in row.attrs})
    )
    return columns


def _label_column(name: str, values: Iterable[str | float | None]) -> _Column:
    given = list(values)
    sets = {value: frozenset({str(value)}) for value in set(given) - {None}}
    return _Column(name, labels=[sets.get(value, _NO_LABEL) for value in given])


def _detail_columns(sessions: Sequence[SessionRow], details: DetailLabels) -> list[_Column]:
    found = [details.get(session.span_id, _NO_DETAILS) for session in sessions]
    names = sorted({name for of_session in found for name in of_session})
    return [_Column(name, [row.get(name, _NO_LABEL) for row in found]) for name in names]


# Any: what users attach to a session may be of any type.
def _attribute_column(name: str, values: Sequence[Any]) -> _Column:
    """Read an attribute as a number if it always is one, else as text; lists are left out."""
    name = f"attr.{name}"
    if any(isinstance(value, _LABELS) for value in values):
        return _label_column(name, [_label(value) for value in values])
    return _Column(name, numbers=[_finite(value) for value in values])


def _label(value: object) -> str | float | None:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, _PLAIN) else None


def _finite(value: object) -> float | None:
    return value if isinstance(value, _NUMBERS) and math.isfinite(value) else None


def _test(column: _Column, chosen: int, rest: int) -> list[_Test]:
    if column.numbers is not None:
        rows = _test_numbers(column.name, column.numbers, chosen)
    else:
        rows = _test_labels(column.name, column.labels or [], chosen, rest)
    return [_Test(row, column) for row in rows]


def _test_labels(
    name: str, labels: Sequence[frozenset[str]], chosen: int, rest: int
) -> list[Difference]:
    overall = Counter(label for of_session in labels for label in of_session)
    known = sum(1 for of_session in labels if of_session)
    if len(overall) > _MOST_VALUES or 2 * len(overall) > known:
        return []
    inside = Counter(label for of_session in labels[:chosen] for label in of_session)
    rows = []
    for label, count in sorted(inside.items()):
        others = overall[label] - count
        is_everyone = overall[label] == chosen + rest
        if count < max(_LEAST_SUPPORT, _LEAST_SUPPORT_SHARE * chosen) or is_everyone:
            continue
        rows.append(
            Difference(
                column=name,
                value=label,
                chosen=count / chosen,
                rest=others / rest,
                chosen_count=chosen,
                rest_count=rest,
                effect=count / chosen - others / rest,
                p=fisher_exact(count, chosen - count, others, rest - others),
                q=1.0,
            )
        )
    return rows


def _test_numbers(name: str, numbers: Sequence[float | None], chosen: int) -> list[Difference]:
    first = [value for value in numbers[:chosen] if value is not None]
    second = [value for value in numbers[chosen:] if value is not None]
    least = max(_LEAST_SUPPORT, _LEAST_SUPPORT_SHARE * chosen)
    if len(first) < least or len(second) < _LEAST_SUPPORT or len({*first, *second}) == 1:
        return []
    row = Difference(
        column=name,
        value=None,
        chosen=nearest_rank(sorted(first), 50),
        rest=nearest_rank(sorted(second), 50),
        chosen_count=len(first),
        rest_count=len(second),
        effect=cliffs_delta(first, second),
        p=mann_whitney(first, second),
        q=1.0,
    )
    return [row]


def _is_large(row: Difference) -> bool:
    return abs(row.effect) >= _SMALLEST_EFFECT


def _fold(tests: Iterable[_Test]) -> list[Difference]:
    """Rank by effect; what splits the sessions like a stronger one is only named there."""
    kept: list[tuple[_Test, int]] = []
    for test in sorted(tests, key=_order):
        members = 0 if test.row.value is None else test.members()
        twin = next((other for other, its in kept if _split_alike(test, members, other, its)), None)
        if twin is None:
            kept.append((test, members))
        else:
            twin.row.alike.append(_title(test.row))
    return [test.row for test, _ in kept]


def _order(test: _Test) -> tuple[float, bool, float]:
    """Sort by effect; of two sides of one split, what they have precedes what they lack."""
    return -round(abs(test.row.effect), 9), test.row.effect < 0, test.row.p


def _split_alike(one: _Test, members: int, other: _Test, others: int) -> bool:
    if one.column.numbers is not None and other.column.numbers is not None:
        return _are_in_step(one.column.numbers, other.column.numbers)
    if one.column.numbers is not None or other.column.numbers is not None:
        return False
    # To have one value and not to have another may be the same split, seen from its two sides.
    everyone = (1 << (one.row.chosen_count + one.row.rest_count)) - 1
    is_same = _likeness(members, others) >= _ALIKE
    is_opposite = _likeness(everyone ^ members, others) >= _ALIKE
    return is_same or (is_opposite and _likeness(members, everyone ^ others) >= _ALIKE)


def _likeness(one: int, other: int) -> float:
    """Give how many are in both of those that are in either."""
    either = (one | other).bit_count()
    return (one & other).bit_count() / either if either else 1.0


def _are_in_step(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    pairs = list(zip(one, other, strict=True))
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    if len(both) < _ALIKE * sum(1 for x, y in pairs if x is not None or y is not None):
        return False
    xs, ys = average_ranks([x for x, _ in both]), average_ranks([y for _, y in both])
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        return False
    return abs(correlation(xs, ys)) >= _ALIKE


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


def _title(row: Difference) -> str:
    if row.value is None:
        return row.column
    return row.value if row.column == "host" else f"{row.column} {row.value}"


def _say(row: Difference) -> str:
    if row.value is not None:
        chosen, rest = say_share(row.chosen), say_share(row.rest)
    elif row.column == "waited":
        chosen, rest = f"median {say_ns(round(row.chosen))}", say_ns(round(row.rest))
    else:
        chosen, rest = f"median {_say_number(row.chosen)}", _say_number(row.rest)
    counts = f"n {row.chosen_count} / {row.rest_count}"
    return f"{_title(row)}: {chosen} of these, {rest} of the rest ({counts}, q {_say_q(row.q)})"


def _say_number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def _say_q(q: float) -> str:
    if q < _SMALLEST_Q:
        return f"below {_SMALLEST_Q:.0e}"
    return f"{q:.0e}".replace("e-0", "e-") if q < 1e-3 else f"{q:.2g}"


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
