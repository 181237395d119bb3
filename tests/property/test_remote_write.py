"""Whatever families stand at, a receiver reads from a request what was put into it."""

from __future__ import annotations

import math
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from rollscope.exposing.remotewrite import RemoteWriter
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point
from tests.monitoring.writerequest import read_request

texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False)
times = st.integers(1_000_000, 2**62)
gauges = st.dictionaries(st.tuples(texts, texts), numbers, max_size=6)
counts = st.lists(st.integers(0, 2**50), min_size=4, max_size=4)
GAUGE = Family(name="g", kind=FamilyKind.GAUGE, help="", labels=("b", "a"))
HISTOGRAM = Family(name="h", kind=FamilyKind.HISTOGRAM, help="", bounds=(-1.0, 0.5, 1e9))


def read(bodies: list[bytes]) -> dict[tuple[tuple[str, str], ...], tuple[float, int]]:
    found = {}
    for body in bodies:
        for series in read_request(body).timeseries:
            (sample,) = series.samples
            labels = tuple((label.name, label.value) for label in series.labels)
            assert labels not in found
            found[labels] = (sample.value, sample.timestamp)
    return found


@given(gauges, times)
def test_gauges_come_back_as_they_were(values: dict[tuple[str, str], float], at_ns: int) -> None:
    points = [Point(labels, value) for labels, value in values.items()]
    known = read(RemoteWriter({}).encode([Exposed(GAUGE, points)], at_ns))
    assert known == {
        (("__name__", "g"), *((k, v) for k, v in (("a", a), ("b", b)) if v)): (
            value,
            at_ns // 1_000_000,
        )
        for (b, a), value in values.items()
    }


@given(counts, numbers, times)
def test_buckets_of_a_histogram_are_added_up(each: list[int], total: float, at_ns: int) -> None:
    look = [Exposed(HISTOGRAM, [Point((), Distribution(each, total))])]
    known = read(RemoteWriter({}).encode(look, at_ns))
    named = {tuple(value for _, value in labels): number for labels, (number, _) in known.items()}
    bounds = ("-1.0", "0.5", "1000000000.0", "+Inf")
    added = dict(zip(bounds, accumulate(each), strict=True))
    expected = {("h_bucket", bound): float(number) for bound, number in added.items()}
    assert named == expected | {("h_sum",): total, ("h_count",): float(sum(each))}


@given(st.lists(gauges, min_size=2, max_size=4), times)
def test_exactly_what_is_gone_is_ended(
    looks: list[dict[tuple[str, str], float]], at_ns: int
) -> None:
    writer, before = RemoteWriter({}), set[tuple[str, str]]()
    for values in looks:
        points = [Point(labels, value) for labels, value in values.items()]
        known = read(writer.encode([Exposed(GAUGE, points)], at_ns))
        ended = {dict(labels).get("b", "") + "|" + dict(labels).get("a", "")
                 for labels, (value, _) in known.items() if math.isnan(value)}  # fmt: skip
        assert ended == {"|".join(labels) for labels in before - values.keys()}
        before = set(values)
