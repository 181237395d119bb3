"""A program that calls everything differently is shown within bounds, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope import Tracer
from rollscope.exposing import catalogue as ours
from rollscope.exposing import spansums
from rollscope.exposing.labels import OTHER, Caps, clean_label, clean_name, clean_value
from rollscope.exposing.runs import expose_run
from rollscope.metrics.families import Distribution
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path


def test_names_without_end_are_lumped_together_and_counted(tmp_path: Path) -> None:
    many = 2_400
    with Tracer(run="run", dir=tmp_path) as tracer:
        for number in range(many):
            with tracer.task(f"family-{number}/1"), tracer.session() as session:
                with tracer.phase(f"phase {number}"):
                    pass
                session.finish("rejected", reason=f"reason {number}")
    with RunStore(tmp_path / "run", threads=1) as store:
        shown = {one.family: one.points for one in expose_run(store)}
    counts = [
        sum(point.value.counts)
        for point in shown[ours.PHASE_DURATION]
        if isinstance(point.value, Distribution)
    ]
    assert (len(counts), sum(counts)) == (201, many)
    finished = {point.labels: point.value for point in shown[ours.SESSIONS_FINISHED]}
    assert sum(value for value in finished.values() if not isinstance(value, Distribution)) == many
    assert len(finished) == 201
    assert ("run", OTHER, "rejected", OTHER) in finished
    refused = {point.labels[1]: point.value for point in shown[ours.METRIC_REFUSALS]}
    value = refused["label_values"]
    assert not isinstance(value, Distribution)
    assert value > 0


def test_states_of_lanes_without_end_are_lumped_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spansums, "_MOST_STATES", 10)
    with Tracer(run="run", dir=tmp_path) as tracer:
        for number in range(30):
            with tracer.state("busy", lane=f"lane {number}"):
                pass
    with RunStore(tmp_path / "run", threads=1) as store:
        shown = {one.family: one.points for one in expose_run(store)}
    labels = [point.labels for point in shown[ours.LANE_STATE]]
    assert len(labels) == 11
    assert labels[-1] == ("run", OTHER, OTHER)


def test_values_keep_their_place_once_they_are_shown() -> None:
    caps = Caps()
    names = [f"v{number}" for number in range(201)]
    first = [caps.admit("f", "x", name, lambda: 3) for name in names]
    assert first == [*names[:200], OTHER]
    assert caps.refused_total == 3
    caps.begin()
    assert [caps.admit("f", "x", name, lambda: 3) for name in reversed(names)] == first[::-1]
    assert caps.refused_total == 3
    assert caps.admit("f", "y", "v200", lambda: 1) == "v200"


def test_values_become_one_line_of_bounded_length() -> None:
    assert clean_value('a"b\\c') == 'a"b\\c'
    assert clean_value("a\nb\0c\ud800") == "a\ufffdb\ufffdc\ufffd"
    long = clean_value("x" * 10_000_000)
    assert (len(long), long[-1]) == (200, "…")


def test_names_fit_whatever_they_were() -> None:
    assert clean_name("tool.calls/s") == "tool_calls_s"
    assert clean_name("…") == "unnamed"
    assert clean_label("9lives") == "user_9lives"
    assert clean_label("__name__") == "name__"
    assert clean_label("le") == "user_le"
