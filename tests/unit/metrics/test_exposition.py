"""Families as text, read back by the parsers of Prometheus' own client."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rollscope.metrics.exposition import TextFormat, choose_format, write_number, write_text
from rollscope.metrics.families import Distribution, Exemplar, Exposed, Family, FamilyKind, Point

parse_openmetrics: Any = openmetrics.text_string_to_metric_families  # untyped
COUNTER = Family(
    name="rollscope_spent_seconds_total",
    kind=FamilyKind.COUNTER,
    help='Time "spent"\nby \\ lane.',
    labels=("run", "lane"),
)
INFO = Family(name="rollscope_run_info", kind=FamilyKind.INFO, help="A run.", labels=("run",))
HISTOGRAM = Family(
    name="rollscope_wait_seconds",
    kind=FamilyKind.HISTOGRAM,
    help="Waits.",
    labels=("run",),
    bounds=(0.1, 1.0),
)
EXEMPLAR = Exemplar((("trace_id", "ab" * 16), ("session", "swe/1#2")), 0.5, 1_700_000_000.25)
WAITS = Exposed(HISTOGRAM, [Point(("r",), Distribution([3, 2, 1], 12.5, {1: EXEMPLAR}))])


def test_openmetrics_names_a_counter_by_its_stem_and_ends_with_a_mark() -> None:
    text = write_text([Exposed(COUNTER, [Point(("r", "a"), 1.5)])], TextFormat.OPENMETRICS)
    assert text.decode().splitlines() == [
        "# TYPE rollscope_spent_seconds counter",
        "# UNIT rollscope_spent_seconds seconds",
        r"# HELP rollscope_spent_seconds Time \"spent\"\nby \\ lane.",
        'rollscope_spent_seconds_total{run="r",lane="a"} 1.5',
        "# EOF",
    ]
    (family,) = parse_openmetrics(text.decode())
    assert (family.name, family.unit) == ("rollscope_spent_seconds", "seconds")
    assert family.documentation == COUNTER.help


def test_the_older_format_names_a_counter_in_full() -> None:
    text = write_text([Exposed(COUNTER, [Point(("r", "a"), 2)])], TextFormat.PROMETHEUS)
    assert text.decode().splitlines() == [
        '# HELP rollscope_spent_seconds_total Time "spent"\\nby \\\\ lane.',
        "# TYPE rollscope_spent_seconds_total counter",
        'rollscope_spent_seconds_total{run="r",lane="a"} 2',
    ]


def test_buckets_are_added_up_and_show_their_exemplar() -> None:
    text = write_text([WAITS], TextFormat.OPENMETRICS).decode()
    (family,) = parse_openmetrics(text)
    samples = {(one.name, one.labels.get("le")): one for one in family.samples}
    name = HISTOGRAM.name
    buckets = [samples[f"{name}_bucket", le].value for le in ("0.1", "1.0", "+Inf")]
    assert buckets == [3, 5, 6]
    assert (samples[f"{name}_count", None].value, samples[f"{name}_sum", None].value) == (6, 12.5)
    shown = samples[f"{name}_bucket", "1.0"].exemplar
    assert shown is not None
    assert shown.labels == dict(EXEMPLAR.labels)
    assert (shown.value, float(shown.timestamp)) == (0.5, EXEMPLAR.at_s)
    assert samples[f"{name}_bucket", "+Inf"].exemplar is None


def test_the_older_format_has_no_exemplars() -> None:
    text = write_text([WAITS], TextFormat.PROMETHEUS).decode()
    assert "trace_id" not in text
    (family,) = text_string_to_metric_families(text)
    assert [one.value for one in family.samples] == [3, 5, 6, 6, 12.5]


def test_an_info_is_a_gauge_to_those_who_know_no_infos() -> None:
    exposed = [Exposed(INFO, [Point(("r",), 1)])]
    assert b"# TYPE rollscope_run info\n" in write_text(exposed, TextFormat.OPENMETRICS)
    assert b"# TYPE rollscope_run_info gauge\n" in write_text(exposed, TextFormat.PROMETHEUS)


def test_families_without_points_are_left_out() -> None:
    assert write_text([Exposed(COUNTER, [])], TextFormat.OPENMETRICS) == b"# EOF\n"
    assert write_text([], TextFormat.PROMETHEUS) == b""


def test_a_value_of_ten_megabytes_is_written_whole() -> None:
    long = 'a"\\\n' * 2_500_000
    text = write_text([Exposed(COUNTER, [Point(("r", long), 1)])], TextFormat.OPENMETRICS)
    assert text.count(b"\n") == 5
    assert text.count(b"\\n") == 2_500_000 + 1


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", TextFormat.PROMETHEUS),
        ("*/*", TextFormat.PROMETHEUS),
        ("text/html, image/png", TextFormat.PROMETHEUS),
        ("application/openmetrics-text", TextFormat.OPENMETRICS),
        ("application/openmetrics-text;version=9.0.0", TextFormat.PROMETHEUS),
        ("application/openmetrics-text;q=0", TextFormat.PROMETHEUS),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", TextFormat.PROMETHEUS),
        ('Application/OpenMetrics-Text; Version="1.0.0"; q=0.9,*/*;q=0.1', TextFormat.OPENMETRICS),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
            "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            TextFormat.OPENMETRICS,
        ),
        ("application/openmetrics-text;q=nonsense", TextFormat.PROMETHEUS),
        (";;,,=;q=1,q", TextFormat.PROMETHEUS),
    ],
)
def test_the_format_is_what_the_header_likes_best(accept: str, form: TextFormat) -> None:
    assert choose_format(accept) is form


def test_numbers_read_back_as_they_were() -> None:
    assert write_number(math.nan) == "NaN"
    assert (write_number(math.inf), write_number(-math.inf)) == ("+Inf", "-Inf")
    assert (write_number(3), write_number(0.1), write_number(2.0**-20)) == (
        "3",
        "0.1",
        "9.5367431640625e-07",
    )
