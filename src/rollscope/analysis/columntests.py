"""Whether some sessions stand out from the rest in one attribute, and how to say it."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from rollscope.analysis.ranks import nearest_rank
from rollscope.analysis.sessioncolumns import SessionColumn
from rollscope.analysis.statistics import cliffs_delta, fisher_exact, mann_whitney
from rollscope.analysis.wording import say_ns, say_share

__all__ = ["Difference", "Tested", "say_difference", "title_of", "try_column"]

_LEAST_SUPPORT = 5
_LEAST_SUPPORT_SHARE = 0.1
_MOST_VALUES = 200
_SMALLEST_Q = 1e-99
"""Below this the approximations behind it say no more, and rounding makes it zero."""


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


class Tested(msgspec.Struct):
    """A difference that was looked for, whether or not it is one, and where."""

    row: Difference
    column: SessionColumn


def try_column(column: SessionColumn, chosen: int, rest: int) -> list[Tested]:
    """Test an attribute: once for each value with enough support, or once for its numbers.

    Args:
        column: The attribute of all sessions, the chosen ones first.
        chosen: How many were chosen.
        rest: How many were not.
    """
    if column.numbers is not None:
        rows = _test_numbers(column.name, column.numbers, chosen)
    else:
        rows = _test_labels(column.name, column.labels or [], chosen, rest)
    return [Tested(row, column) for row in rows]


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


def title_of(row: Difference) -> str:
    """Name the attribute, with the value that they share if it is one."""
    if row.value is None:
        return row.column
    return row.value if row.column == "host" else f"{row.column} {row.value}"


def say_difference(row: Difference) -> str:
    """Say how the chosen sessions differ from the rest."""
    if row.value is not None:
        chosen, rest = say_share(row.chosen), say_share(row.rest)
    elif row.column == "waited":
        chosen, rest = f"median {say_ns(round(row.chosen))}", say_ns(round(row.rest))
    else:
        chosen, rest = f"median {_say_number(row.chosen)}", _say_number(row.rest)
    counts = f"n {row.chosen_count} / {row.rest_count}"
    return f"{title_of(row)}: {chosen} of these, {rest} of the rest ({counts}, q {_say_q(row.q)})"


def _say_number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def _say_q(q: float) -> str:
    if q < _SMALLEST_Q:
        return f"below {_SMALLEST_Q:.0e}"
    return f"{q:.0e}".replace("e-0", "e-") if q < 1e-3 else f"{q:.2g}"
