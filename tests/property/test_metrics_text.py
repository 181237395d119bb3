"""Whatever labels and numbers hold, the parsers of Prometheus' own client read them back."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rollscope.exposing.histograms import Shown, session_exemplar
from rollscope.exposing.labels import clean_label, clean_name, clean_value
from rollscope.metrics.exposition import TextFormat, write_text
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point

parse_openmetrics: Any = openmetrics.text_string_to_metric_families  # untyped
TEXTS = st.text(max_size=30) | st.text(alphabet='"\\\n\r\t{},=# \x00\ud800\u2028a', max_size=12)
NUMBERS = st.floats() | st.integers(min_value=0, max_value=2**53)
GAUGE = Family(
    name="rollscope_a", kind=FamilyKind.GAUGE, help="A gauge.", labels=("first", "second")
)
HISTOGRAM = Family(
    name="rollscope_b", kind=FamilyKind.HISTOGRAM, help="A histogram.", labels=("c",), bounds=(1.0,)
)


@st.composite
def _points(draw: st.DrawFn) -> list[Point]:
    labels = draw(st.lists(st.tuples(TEXTS, TEXTS), unique_by=_cleaned, max_size=4))
    return [Point(_cleaned(one), draw(NUMBERS)) for one in labels]


def _cleaned(labels: tuple[str, str]) -> tuple[str, str]:
    return clean_value(labels[0]), clean_value(labels[1])


@given(_points())
def test_both_formats_read_back_as_written(points: list[Point]) -> None:
    written = [(dict(zip(GAUGE.labels, one.labels, strict=True)), one.value) for one in points]
    for form, parse in (
        (TextFormat.OPENMETRICS, parse_openmetrics),
        (TextFormat.PROMETHEUS, text_string_to_metric_families),
    ):
        text = write_text([Exposed(GAUGE, points)], form).decode()
        read = [(one.labels, one.value) for family in parse(text) for one in family.samples]
        assert [labels for labels, _ in read] == [labels for labels, _ in written]
        assert all(_same(a, b) for (_, a), (_, b) in zip(read, written, strict=True))


def _same(one: float, other: Any) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@given(TEXTS, st.integers(0, 10**6), st.integers(0, 10**15), TEXTS | st.text(min_size=100))
def test_exemplars_read_back_as_written(label: str, count: int, length: int, session: str) -> None:
    exemplar = session_exemplar(Shown(1_500_000_000, length, b"\xab" * 16, session))
    assert sum(len(part) for pair in exemplar.labels for part in pair) <= 128
    stands = Distribution([count, 1], length / 1e9, {0: exemplar})
    exposed = [Exposed(HISTOGRAM, [Point((clean_value(label),), stands)])]
    text = write_text(exposed, TextFormat.OPENMETRICS).decode()
    (family,) = parse_openmetrics(text)
    assert family.samples[0].exemplar is not None
    assert family.samples[0].exemplar.labels == dict(exemplar.labels)
    assert [one.value for one in family.samples] == [count, count + 1, count + 1, length / 1e9]


@given(st.text(max_size=300))
def test_any_name_can_be_used(given: str) -> None:
    name, label = "rollscope_user_" + clean_name(given), clean_label(given)
    family = Family(name=name, kind=FamilyKind.GAUGE, help=given, labels=(label,))
    for form in TextFormat:
        text = write_text([Exposed(family, [Point(("x",), 1)])], form).decode()
        parse = (
            parse_openmetrics if form is TextFormat.OPENMETRICS else text_string_to_metric_families
        )
        (read,) = parse(text)
        assert (read.samples[0].name, read.samples[0].labels) == (name, {label: "x"})
