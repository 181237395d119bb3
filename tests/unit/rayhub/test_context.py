"""What calls carry, and what a process that gets them makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.instrument import default
from rollscope.rayhub import context
from rollscope.rayhub.context import Carried, arrive, take_along
from rollscope.testing import capture

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = {"traceparent": "00-0102030405060708090a0b0c0d0e0f10-00f067aa0ba902b7-01"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_state", context._State())


def carried(run: str, directory: Path, since_ns: int) -> Carried:
    return {
        "headers": HEADERS,
        "settings": {"run": run, "dir": str(directory), "sink": "none"},
        "since_ns": since_ns,
        "follow_all": False,
    }


def test_nothing_is_taken_along_where_nothing_is_recorded() -> None:
    assert take_along(follow_all=True) is None


def test_the_span_and_the_settings_are_taken_along(tmp_path: Path) -> None:
    rs.init(run="mine", dir=tmp_path, sink="none")
    with rs.span("caller") as span:
        first = take_along(follow_all=True)
    second = take_along(follow_all=False)
    assert first is not None
    assert second is not None
    assert str(span.ref) == first["headers"]["traceparent"]
    assert first["settings"]["run"] == "mine"
    assert first["settings"]["dir"] == str(tmp_path)
    assert (first["follow_all"], second["follow_all"]) == (True, False)
    assert second["headers"] == {}
    assert first["since_ns"] == second["since_ns"] > 0


def test_a_process_that_records_nothing_joins_the_run_of_its_caller(tmp_path: Path) -> None:
    with arrive(carried("theirs", tmp_path, 7)) as span:
        assert rs.current() is span
        assert rs.inject()["traceparent"][:35] == HEADERS["traceparent"][:35]
    assert not rs.current()
    assert (default._tracer.run, default._tracer.settings.role) == ("theirs", "worker")
    handed_on = take_along(follow_all=False)
    assert handed_on is not None
    assert handed_on["since_ns"] == 7


def test_a_role_of_the_environment_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSCOPE_ROLE", "reward")
    with arrive(carried("theirs", tmp_path, 7)):
        assert default._tracer.settings.role == "reward"


def test_of_two_runs_the_later_is_joined_and_stayed_with(tmp_path: Path) -> None:
    for run, since_ns, joined in (("a", 7, "a"), ("b", 8, "b"), ("a", 7, "b"), ("b", 8, "b")):
        with arrive(carried(run, tmp_path, since_ns)):
            assert default._tracer.run == joined


def test_what_the_process_records_itself_is_left_alone(tmp_path: Path) -> None:
    with capture(run="own") as own:
        with arrive(carried("theirs", tmp_path, 7)), rs.span("inner"):
            assert default._tracer.run == "own"
        assert own.named("inner").parent_id == HEADERS["traceparent"].split("-")[2]


def test_a_process_that_was_told_to_stop_does_not_begin_again(tmp_path: Path) -> None:
    with arrive(carried("theirs", tmp_path, 7)):
        pass
    rs.shutdown()
    with arrive(carried("theirs", tmp_path, 7)) as span:
        assert not span
    assert not rs.enabled()


def test_recording_can_be_turned_off_where_calls_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    with arrive(carried("theirs", tmp_path, 7)) as span:
        assert not span
    assert not rs.enabled()


def test_what_cannot_be_read_does_not_harm_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    broken: Carried = {"headers": {}}  # type: ignore[typeddict-item]
    with arrive(broken) as span:
        assert not span
