from __future__ import annotations

import logging
import os

import pytest

from rollscope.instrument.guard import forget_told, guarded, tell, tell_once


def fail() -> None:
    raise RuntimeError("out of order")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard as in a host program."""
    monkeypatch.delenv("ROLLSCOPE_RAISE")


@pytest.mark.usefixtures("quiet")
def test_a_fault_is_kept_from_the_host_and_logged_in_one_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with guarded("counting sheep"):
        fail()
    assert caplog.messages == [
        f"Rollscope failed in counting sheep of process {os.getpid()} and goes on without it: "
        "RuntimeError: out of order"
    ]
    assert caplog.records[0].name == "rollscope"
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.usefixtures("quiet")
def test_each_place_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    for place in ("here", "there", "here"):
        with guarded(place):
            fail()
    assert len(caplog.messages) == 2


@pytest.mark.usefixtures("quiet")
def test_the_guard_serves_as_a_decorator(caplog: pytest.LogCaptureFixture) -> None:
    @guarded("adding")
    def add(a: int, b: int) -> int:
        if a < 0:
            fail()
        return a + b

    assert add(1, 2) == 3
    assert add(-1, 2) is None
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.usefixtures("quiet")
def test_what_is_no_fault_passes(error: type[BaseException]) -> None:
    with pytest.raises(error), guarded("anything"):
        raise error


@pytest.mark.parametrize(("value", "raises"), [("1", True), ("0", False), ("", False)])
def test_faults_are_raised_on_request(
    monkeypatch: pytest.MonkeyPatch, value: str, raises: bool
) -> None:
    monkeypatch.setenv("ROLLSCOPE_RAISE", value)
    raised = False
    try:
        with guarded("anything"):
            fail()
    except RuntimeError:
        raised = True
    assert raised is raises


def test_a_message_is_told_again_after_forgetting(caplog: pytest.LogCaptureFixture) -> None:
    tell_once("key", "first %d", 1)
    tell_once("key", "second %d", 2)
    forget_told()
    tell_once("key", "third %d", 3)
    assert caplog.messages == ["first 1", "third 3"]


def test_there_is_an_end_to_telling(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(5000):
        tell_once(f"key {number}", "about %d", number)
    assert len(caplog.messages) == 1001
    assert caplog.messages[999] == "about 999"
    assert "keeps quiet" in caplog.messages[1000]


def test_telling_has_no_memory(caplog: pytest.LogCaptureFixture) -> None:
    tell("again")
    tell("again")
    assert caplog.messages == ["again", "again"]
