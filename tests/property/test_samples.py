"""Metrics add up to what was called, however calls are cut into drains, and by step."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollscope.instrument.calls import COUNT, GAUGE, OBSERVE, STEP_BEGUN, STEP_ENDED
from rollscope.instrument.samples import Samples
from rollscope.metrics.buckets import bucket_of
from rollscope.model.batch import Metric

LABELS = st.dictionaries(
    st.sampled_from("abc"), st.sampled_from(["x", "y", "ü", 1, -7]), max_size=3
)
CALLS = st.tuples(
    st.sampled_from((COUNT, GAUGE, OBSERVE)),
    st.sampled_from(("n", "m")),
    st.integers(0, 1000).map(float),
    LABELS,
)
MARKS = st.sampled_from(("begin", "end"))
DRAINS = st.lists(st.lists(CALLS | MARKS, max_size=12), max_size=6)

Series = tuple[str, str, tuple[tuple[str, str], ...], int | None]
Sums = dict[Series, list[float]]
_TYPES = {COUNT: "counter", GAUGE: "gauge", OBSERVE: "histogram"}


def lay_out(drains: list[list[Any]]) -> tuple[list[list[Any]], Sums]:
    """Give what lies in the buffer at each drain, and the values of each series and step."""
    buffers: list[list[Any]] = []
    expected: defaultdict[Series, list[float]] = defaultdict(list)
    open_steps: list[int] = []
    begun = 0
    for drain in drains:
        buffer: list[Any] = []
        for item in drain:
            if item == "begin":
                begun += 1
                open_steps.append(begun)
                buffer += (STEP_BEGUN, begun, 1, begun)
            elif item == "end":
                if open_steps:
                    oldest = open_steps.pop(0)  # so that steps overlap
                    buffer += (STEP_ENDED, oldest, 1, oldest)
            else:
                code, name, value, labels = item
                buffer += item
                texts = tuple(sorted((key, str(text)) for key, text in labels.items()))
                step = open_steps[-1] if open_steps else None
                expected[_TYPES[code], name, texts, step].append(value)
        buffers.append(buffer)
    return buffers, dict(expected)


@given(DRAINS)
def test_records_add_up_to_the_calls_of_each_series_and_step(drains: list[list[Any]]) -> None:
    buffers, expected = lay_out(drains)
    refused: list[str] = []
    samples = Samples(1000, 1.0, lambda _, reason: refused.append(reason))
    records: list[Metric] = []
    for number, buffer in enumerate(buffers):
        at_ns = number * 400_000_000
        samples.fold(buffer, at_ns)
        records += samples.take(at_ns)
    records += samples.take(0, is_all=True)
    assert not samples.is_due(2**62)
    assert refused == []
    found: defaultdict[Series, list[Metric]] = defaultdict(list)
    for record in records:
        key = (str(record.type), record.name, tuple(sorted(record.labels.items())), record.step)
        found[key].append(record)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        check(key[0], found[key], values)


def check(type_: str, records: list[Metric], values: list[float]) -> None:
    """Compare the records of one series and step with its values."""
    assert sum(record.count for record in records) == len(values)
    assert len({record.mono_ns for record in records}) == len(records)
    if type_ == "gauge":
        assert records[-1].value == values[-1]
    else:
        assert sum(record.value for record in records) == sum(values)
    if type_ != "counter":
        assert min(record.min or 0.0 for record in records) == min(values)
        assert max(record.max or 0.0 for record in records) == max(values)
    if type_ == "histogram":
        buckets: defaultdict[int, int] = defaultdict(int)
        for record in records:
            for bucket, count in record.buckets.items():
                buckets[bucket] += count
        assert sum(buckets.values()) == len(values)
        assert buckets.keys() == {bucket_of(value) for value in values}
