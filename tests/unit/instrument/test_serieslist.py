from __future__ import annotations

import pytest

from rollscope.instrument.calls import COUNT, GAUGE
from rollscope.instrument.serieslist import SeriesList, pack_labels


def find(series: SeriesList, code: int, name: str, **labels: str) -> dict[str, str]:
    """Call a metric; give the labels of the series that the call goes to."""
    found = series.find((code, name, pack_labels(labels)))
    assert found.refusal is None
    assert found.tally is not None
    found.tally.add([1.0], 5)
    return found.tally.take(None, 5).labels


def test_other_label_names_are_kept_and_told_once_for_each_metric(
    caplog: pytest.LogCaptureFixture,
) -> None:
    series = SeriesList(100)
    assert find(series, COUNT, "calls", tool="python") == {"tool": "python"}
    for pool in "abab":
        assert find(series, COUNT, "calls", tool="python", pool=pool)["pool"] == pool
    assert find(series, COUNT, "calls") == {}
    assert find(series, COUNT, "tries") == {}
    assert find(series, COUNT, "tries", tool="python") == {"tool": "python"}
    assert [message.split(";")[0] for message in caplog.messages] == [
        "Rollscope was given the metric 'calls' with the label tool at first, and now with the "
        "labels pool, tool",
        "Rollscope was given the metric 'tries' with no labels at first, and now with the label "
        "tool",
    ]


def test_other_values_another_order_and_another_kind_are_nothing_to_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    series = SeriesList(100)
    find(series, COUNT, "calls", tool="python", pool="a")
    find(series, COUNT, "calls", pool="b", tool="search")
    find(series, GAUGE, "calls", rank="0")
    assert caplog.messages == []
