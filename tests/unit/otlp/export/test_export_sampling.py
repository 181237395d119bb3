from __future__ import annotations

import os

import pytest

from rollscope.otlp.export.sampling import Sampler
from tests.unit.otlp.export.rowmaking import row_of


def test_a_share_of_the_traces_is_kept_and_always_the_same_ones() -> None:
    traces = [os.urandom(16) for _ in range(2_000)]
    kept = [trace for trace in traces if Sampler(0.25).keeps(row_of(trace_id=trace))]
    assert 300 < len(kept) < 700
    assert all(Sampler(0.25).keeps(row_of(trace_id=trace)) for trace in kept)
    assert all(Sampler(0.5).keeps(row_of(trace_id=trace)) for trace in kept)


def test_all_or_none_are_kept_at_the_ends() -> None:
    trace = b"\xff" * 16
    assert Sampler(1.0).keeps(row_of(trace_id=trace))
    assert not Sampler(0.0).keeps(row_of(trace_id=bytes(15) + b"\1"))


@pytest.mark.parametrize(
    "fields", [{"status": "error"}, {"status": "lost"}, {"outcome": "timeout"}]
)
def test_a_trace_is_kept_from_its_first_failure_on(fields: dict[str, str]) -> None:
    sampler = Sampler(0.0)
    assert not sampler.keeps(row_of())
    assert sampler.keeps(row_of(**fields))
    assert sampler.keeps(row_of())
