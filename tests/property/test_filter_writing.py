"""A filter that is written is read as the same filter."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollscope.analysis.filters import (
    FIELDS,
    Comparison,
    Filter,
    Not,
    Operator,
    Text,
    ValueType,
    parse_filter,
)
from rollscope.analysis.filterwriting import write_filter

WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
TEXT = st.text(min_size=1)
ORDERS: list[Operator] = ["<", "<=", ">", ">="]
VALUES: dict[ValueType, st.SearchStrategy[Any]] = {
    ValueType.TEXT: TEXT,
    ValueType.INTEGER: WHOLE,
    ValueType.NUMBER: st.decimals(-1_000_000, 1_000_000, places=6).map(float),
    ValueType.DURATION: st.integers(0, 10**15),
    ValueType.ID: st.integers(0, 2**64 - 1).map("{:016x}".format),
}


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    field = draw(st.sampled_from(list(FIELDS.values())))
    values = VALUES[field.type] if field.type in VALUES else st.sampled_from(field.choices)
    if field.type in (ValueType.INTEGER, ValueType.NUMBER, ValueType.DURATION):
        operator = draw(st.sampled_from(ORDERS))
        return Comparison(field.name, operator, (draw(values),))
    several = draw(st.lists(st.none() | values, min_size=1, max_size=3))
    return Comparison(field.name, ":", tuple(several))


TERMS = comparisons() | st.lists(TEXT, min_size=1, max_size=3).map(lambda said: Text(tuple(said)))


@given(st.lists(TERMS | TERMS.map(Not), max_size=4))
def test_a_written_filter_reads_as_it_was(terms: list[Comparison | Text | Not]) -> None:
    wanted = Filter(tuple(terms))
    assert parse_filter(write_filter(wanted)) == wanted
