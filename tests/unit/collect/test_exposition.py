from __future__ import annotations

import math

import pytest

from rollscope.collect.exposition import Exposition, ExpositionReader, Point
from tests.integration.exposing import vllm_text


def read(text: str | bytes, *, piece: int = 0, wanted: str = "", **bounds: int) -> Exposition:
    """Read a text, whole or in pieces."""
    data = text.encode() if isinstance(text, str) else text
    reader = ExpositionReader(lambda name: wanted in name, **bounds)
    for at in range(0, len(data), piece or len(data) or 1):
        if not reader.feed(data[at : at + (piece or len(data))]):
            break
    return reader.close()


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("up 1", Point("up", {}, 1.0)),
        ("vllm:running{} 2.5 1395066363000", Point("vllm:running", {}, 2.5)),
        ('a{b="c",} 1e3', Point("a", {"b": "c"}, 1000.0)),
        ('a { b = "c" , d="e" }\t7 ', Point("a", {"b": "c", "d": "e"}, 7.0)),
        (r'a{b="\\ \" \n \x } # 1"} 1', Point("a", {"b": '\\ " \n \\x } # 1'}, 1.0)),
        ('a{b="ä \u2028"} +Inf', Point("a", {"b": "ä \u2028"}, math.inf)),
        ('a_bucket{le="1"} 3 # {trace_id="x"} 0.6 1.5', Point("a_bucket", {"le": "1"}, 3.0)),
        ('{"with.dots",b="c"} 1', Point("with.dots", {"b": "c"}, 1.0)),
        ('{"bare"} 1', Point("bare", {}, 1.0)),
        ('a{"odd.label"="c"} 1', Point("a", {"odd.label": "c"}, 1.0)),
    ],
)
def test_a_line_is_read(line: str, point: Point) -> None:
    exposition = read(line)

    assert exposition.points == [point]
    assert exposition.bad_lines == 0


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a b",
        "a 1_000",
        "a 1 2 3",
        "a 1 x",
        "1a 1",
        'a{b="c" 1',
        'a{b="c"d="e"} 1',
        "a{b=c} 1",
        'a{b="c"}',
        '{b="c"} 1',
        "a-b 1",
        "\x00\xff",
    ],
)
def test_a_bad_line_is_counted_and_reading_goes_on(line: str) -> None:
    exposition = read(f"{line}\nok 1\n")

    assert [point.name for point in exposition.points] == ["ok"]
    assert exposition.bad_lines == 1


def test_nan_is_a_value() -> None:
    assert math.isnan(read("a NaN").points[0].value)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_pieces_make_the_same_as_the_whole(piece: int) -> None:
    whole = read(vllm_text())

    parts = read(vllm_text(), piece=piece)

    assert len(whole.points) == 14
    assert (parts.points, parts.types) == (whole.points, whole.types)


def test_only_what_is_wanted_is_kept_and_all_is_counted() -> None:
    exposition = read(vllm_text(), wanted="kv_cache")

    assert [point.name for point in exposition.points] == ["vllm:kv_cache_usage_perc"]
    assert exposition.series == 14
    assert exposition.types["vllm:kv_cache_usage_perc"] == "gauge"


def test_nothing_counts_after_the_end_of_openmetrics() -> None:
    assert [point.name for point in read("a 1\n# EOF\nb 2\n").points] == ["a"]


def test_what_is_too_much_is_cut() -> None:
    by_bytes = read("a 1\n" * 100, piece=10, most_bytes=42)
    by_series = read("a 1\n" * 100, piece=40, most_series=30)

    assert (by_bytes.is_cut, len(by_bytes.points)) == (True, 10)
    assert (by_series.is_cut, len(by_series.points)) == (True, 30)


def test_a_line_without_end_takes_no_memory_and_hides_only_itself() -> None:
    endless = b'a{b="' + b"x" * 1_000_000

    exposition = read(b"first 1\n" + endless + b'"} 1\nlast 1\n', piece=1000)

    assert [point.name for point in exposition.points] == ["first", "last"]
    assert exposition.bad_lines == 1
