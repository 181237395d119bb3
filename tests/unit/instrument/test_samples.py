"""Calls of metrics: what is added up, what is refused, and to which step it belongs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from rollscope.instrument.calls import CALL, COUNT, GAUGE, OBSERVE, STEP_BEGUN, STEP_ENDED
from rollscope.instrument.samples import Samples
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType

CODES = {
    MetricType.COUNTER: COUNT,
    MetricType.GAUGE: GAUGE,
    MetricType.HISTOGRAM: OBSERVE,
}


class Lab:
    """Folds calls and keeps count of what was refused."""

    def __init__(self, most_series: int = 2000) -> None:
        self.refused: Counter[str] = Counter()
        self.samples = Samples(most_series, 1.0, self.count_drop)
        self.waiting: list[Any] = []

    def count_drop(self, contents: dict[str, int], reason: str) -> None:
        assert contents.keys() == {"metric"}
        self.refused[reason] += contents["metric"]

    def call(self, code: int, name: Any, value: Any = 1, /, **labels: Any) -> None:
        self.waiting.extend((code, name, value, labels))

    def mark(self, code: int, number: Any, at_ns: int, span_id: int) -> None:
        self.waiting.extend((code, number, at_ns, span_id))

    def fold(self, at_ns: int = 1000, room: int = 10**6) -> None:
        self.samples.fold_waiting(self.waiting, room, lambda: at_ns)
        assert self.waiting == []

    def take(self, at_ns: int = 1000, room: int = 10**6) -> list[Metric]:
        self.fold(at_ns, room)
        return self.samples.take(at_ns, is_all=True)


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_calls_become_one_record_a_series_in_order_of_appearance(lab: Lab) -> None:
    for number in range(5000):
        lab.call(COUNT, "n", worker="ab"[number % 2], pool="p")
        lab.call(COUNT, "n", pool="p", worker="a")
    lab.call(GAUGE, "n", 3, pool="p", worker="a")
    lab.call(GAUGE, "n", -1.5, pool="p", worker="a")
    lab.call(COUNT, "n", 2.5)
    found = lab.take()
    assert [(m.type, m.labels, m.value, m.count) for m in found] == [
        ("counter", {"pool": "p", "worker": "a"}, 7500, 7500),
        ("counter", {"pool": "p", "worker": "b"}, 2500, 2500),
        ("gauge", {"pool": "p", "worker": "a"}, -1.5, 2),
        ("counter", {}, 2.5, 1),
    ]
    assert (found[2].min, found[2].max) == (-1.5, 3)
    assert lab.take() == []
    assert not lab.refused


def test_the_last_value_of_a_gauge_counts_however_its_calls_are_written(lab: Lab) -> None:
    lab.call(GAUGE, "g", 1, a="x", b="y")
    lab.call(GAUGE, "g", 2, b="y", a="x")
    lab.call(GAUGE, "g", 3, a="x", b="y")
    (metric,) = lab.take()
    assert (metric.value, metric.count, metric.min, metric.max) == (3, 3, 1, 3)


def test_a_histogram_keeps_its_buckets_over_several_folds(lab: Lab) -> None:
    for value in (0.5, 4.0, 4.0, -1.0):
        lab.call(OBSERVE, "h", value)
        lab.fold()
    (metric,) = lab.take()
    assert (metric.value, metric.count, metric.min, metric.max) == (7.5, 4, -1.0, 4.0)
    assert sorted(metric.buckets.values()) == [1, 1, 2]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"worker": 3}, {"worker": "3"}),
        ({"worker": 10**30}, {"worker": hex(10**30)}),
        ({"worker": None, "on": True}, {"worker": "None", "on": "True"}),
        ({"worker": ["a", 1]}, {"worker": "['a', 1]"}),
        ({"worker": "\ud800"}, {"worker": "\\ud800"}),
        ({"worker": object()}, {"worker": "<builtins.object>"}),
        ({"worker": "x" * 10_000}, None),
    ],
    ids=range(7),
)
def test_labels_of_any_type_become_text(
    lab: Lab, labels: dict[str, Any], expected: dict[str, str] | None
) -> None:
    for _ in range(2):
        lab.call(COUNT, "n", **labels)
        lab.call(COUNT, "plain", worker="a")
    metric, plain = lab.take()
    assert metric.count == plain.count == 2
    if expected is None:
        assert len(metric.labels["worker"].encode()) <= 512
    else:
        assert metric.labels == expected


def test_labels_that_are_equal_but_read_differently_are_kept_apart(lab: Lab) -> None:
    for value in (1, True, 1.0, "1"):
        lab.call(COUNT, "n", on=value)
    assert {m.labels["on"]: m.count for m in lab.take()} == {"1": 2, "True": 1, "1.0": 1}


class Hostile(str):
    """Text that must not be asked anything."""

    def __hash__(self) -> int:
        raise AssertionError("the host's code was run")

    __eq__ = None  # type: ignore[assignment]  # as above


def test_code_of_labels_and_names_is_not_run(lab: Lab) -> None:
    lab.call(COUNT, Hostile("n"), worker=Hostile("a"))
    lab.call(COUNT, "n", worker="a")
    (metric,) = lab.take()
    assert (metric.name, metric.labels, metric.count) == ("n", {"worker": "a"}, 2)


class Tensor:
    """Would wait for a device if it were asked for its value."""

    def __float__(self) -> float:
        raise AssertionError("the host's code was run")


@pytest.mark.parametrize("value", ["one", None, [1], object(), Tensor(), 1j], ids=range(6))
@pytest.mark.parametrize("code", list(CODES.values()))
def test_a_value_that_is_no_number_is_told_and_harms_no_other(
    lab: Lab, code: int, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lab.call(COUNT, "before")
    for _ in range(2):
        lab.call(code, "odd", value)
    lab.call(COUNT, "after")
    assert [metric.name for metric in lab.take()] == ["before", "after"]
    assert lab.refused == {"no_number": 2}
    assert len(caplog.messages) == 1
    assert "'odd'" in caplog.messages[0]


@pytest.mark.parametrize(
    ("value", "expected"), [(True, 1.0), (7, 7.0), (2**80, 2.0**80), (0, 0.0)], ids=range(4)
)
@pytest.mark.parametrize("code", list(CODES.values()))
def test_numbers_of_any_sort_are_taken(lab: Lab, code: int, value: Any, expected: float) -> None:
    lab.call(code, "n", value)
    assert [metric.value for metric in lab.take()] == [expected]


def test_a_numpy_scalar_is_taken_for_its_value(lab: Lab) -> None:
    shape = {"__module__": "numpy", "ndim": 0, "item": lambda self: 2.5}
    lab.call(GAUGE, "n", type("float32", (), shape)())
    assert [metric.value for metric in lab.take()] == [2.5]


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, -(10**400), 10**400], ids=range(6))
def test_an_amount_that_would_spoil_a_counter_is_refused(
    lab: Lab, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for amount in (1, value, 2, value):
        lab.call(COUNT, "n", amount)
    assert [(metric.value, metric.count) for metric in lab.take()] == [(3, 2)]
    assert lab.refused == {"amount": 2}
    assert len(caplog.messages) == 1
    assert "use a gauge for what falls" in caplog.messages[0]


def test_a_histogram_takes_negative_values_and_refuses_what_is_not_finite(lab: Lab) -> None:
    for value in (-2.0, math.nan, math.inf):
        lab.call(OBSERVE, "h", value)
    assert [(metric.value, metric.count) for metric in lab.take()] == [(-2.0, 1)]
    assert lab.refused == {"amount": 2}


def test_a_gauge_may_be_anything_and_its_extremes_are_numbers(lab: Lab) -> None:
    for value in (math.nan, 3, -math.inf, math.nan):
        lab.call(GAUGE, "g", value)
    (metric,) = lab.take()
    assert math.isnan(metric.value)
    assert (metric.count, metric.min, metric.max) == (4, -math.inf, 3)
    assert not lab.refused


@pytest.mark.parametrize("name", [7, None, ["n"], "", "x" * 201], ids=range(5))
def test_a_bad_name_is_refused(lab: Lab, name: Any, caplog: pytest.LogCaptureFixture) -> None:
    lab.call(COUNT, name)
    lab.call(COUNT, name, worker=1)
    lab.call(COUNT, "n")
    assert [metric.name for metric in lab.take()] == ["n"]
    assert lab.refused == {"name": 2}
    assert len(caplog.messages) == 1


def test_a_name_that_cannot_be_encoded_is_made_so(lab: Lab) -> None:
    lab.call(COUNT, "\ud800")
    assert [metric.name for metric in lab.take()] == ["\\ud800"]


def test_more_than_sixteen_labels_are_refused(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    labels = {f"l{number}": "x" for number in range(17)}
    lab.call(COUNT, "n", **labels)
    labels.popitem()
    lab.call(COUNT, "n", **labels)
    assert [metric.labels for metric in lab.take()] == [labels]
    assert lab.refused == {"labels": 1}
    assert "17 labels" in caplog.messages[0]


def test_series_beyond_the_bound_are_added_up_as_one(caplog: pytest.LogCaptureFixture) -> None:
    lab = Lab(most_series=3)
    for _ in range(2):
        for number in range(10):
            lab.call(COUNT, "n", id=f"{number}")
        lab.fold()
    lab.call(OBSERVE, "n", 2.0, id="0")  # without a series so far: refused
    lab.call(GAUGE, "n", 2.0, id="0")
    values = {metric.labels.get("id", "other"): metric.value for metric in lab.take()}
    assert values == {"0": 2, "1": 2, "2": 2, "other": 14}
    assert lab.refused == {"series": 16}
    assert len(caplog.messages) == 1
    assert "metric_series" in caplog.messages[0]


def test_a_known_series_is_found_when_there_is_no_room_however_it_is_written() -> None:
    lab = Lab(most_series=1)
    lab.call(COUNT, "n", a="1", b="2")
    for _ in range(20):
        lab.call(COUNT, "n", b=2, a=1)
        lab.call(COUNT, "n", b="2", a="1")
    assert [metric.value for metric in lab.take()] == [41]
    assert not lab.refused


def test_names_without_end_take_no_room() -> None:
    lab = Lab(most_series=2)
    for number in range(5000):
        lab.call(COUNT, f"n{number}")
    assert len(lab.take()) == 2
    assert lab.refused == {"series": 4998}


def test_what_does_not_fit_is_given_up_from_the_front_and_counted() -> None:
    lab = Lab()
    lab.mark(STEP_BEGUN, 7, 10, 1)
    for number in range(100):
        lab.call(GAUGE, "g", number)
    (metric,) = lab.take(room=40)
    assert (metric.value, metric.count, metric.min, metric.step) == (99, 40, 60, 7)
    assert lab.refused == {"overload": 60}


def test_calls_belong_to_the_step_that_began_last_and_is_open(lab: Lab) -> None:
    lab.call(COUNT, "n")
    lab.mark(STEP_BEGUN, 1, 100, 11)
    lab.call(COUNT, "n", 10)
    lab.mark(STEP_BEGUN, 2, 5_000, 12)
    lab.call(COUNT, "n", 20)
    lab.mark(STEP_ENDED, 1, 10_000, 11)
    lab.call(COUNT, "n", 21)
    lab.mark(STEP_ENDED, 2, 15_000, 12)
    lab.call(COUNT, "n", 30)
    found = [(metric.step, metric.value, metric.mono_ns) for metric in lab.take(20_000)]
    assert found == [
        (None, 1, 99),
        (1, 10, 4_999),
        (2, 20, 9_999),
        (2, 21, 14_999),
        (None, 30, 20_000),
    ]


@pytest.mark.parametrize("number", ["one", None, 1.5, 2**63], ids=range(4))
def test_a_step_that_is_no_whole_number_is_none(lab: Lab, number: Any) -> None:
    lab.mark(STEP_BEGUN, number, 100, 11)
    lab.call(COUNT, "n")
    assert [metric.step for metric in lab.take()] == [None]


def test_records_of_a_series_never_have_the_same_time(lab: Lab) -> None:
    for number in range(5):
        lab.mark(STEP_BEGUN, number, 100, number)
        lab.call(COUNT, "n")
        lab.mark(STEP_ENDED, number, 100, number)
    times = [metric.mono_ns for metric in lab.take(100)]
    assert len(set(times)) == len(times) == 5


def test_a_series_is_due_a_second_after_it_was_last_written(lab: Lab) -> None:
    second = 1_000_000_000
    taken = []
    for tenth in range(25):
        lab.call(COUNT, "busy")
        if tenth == 17:
            lab.call(COUNT, "rare")
        lab.fold(tenth * second // 10)
        taken += [(m.name, tenth, m.value) for m in lab.samples.take(tenth * second // 10)]
    assert taken == [("busy", 0, 1), ("busy", 10, 10), ("rare", 17, 1), ("busy", 20, 10)]
    assert not lab.samples.is_due(3 * second - 1)
    assert lab.samples.is_due(3 * second)
    lab.samples.take(3 * second)
    assert not lab.samples.is_due(9 * second)


def test_what_a_step_has_cut_off_is_due_at_once(lab: Lab) -> None:
    lab.call(COUNT, "n")
    lab.fold(1000)
    lab.samples.take(1000)
    lab.call(COUNT, "n")
    lab.fold(2000)
    assert not lab.samples.is_due(2000)
    lab.mark(STEP_BEGUN, 0, 3000, 11)
    lab.fold(3000)
    assert lab.samples.is_due(3000)


def test_a_fault_of_ours_costs_the_calls_of_one_slice_which_are_counted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    for _ in range(3000):
        lab.call(COUNT, "n")
    lab.waiting[1500 * CALL + CALL - 1] = None  # no labels at all: nobody calls like that
    assert [metric.value for metric in lab.take()] == [2000]
    assert lab.refused == {"fault": 1000}
