"""The redact function decides what is kept of payloads, and fails closed."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollscope
from rollscope.errors import SettingError
from rollscope.instrument.redaction import Redaction, function_path
from rollscope.testing.capture import Capture, capture
from rollscope.testing.fakes import FakeClock

SECRET = "sk-very-secret"  # noqa: S105  (it is none)


def mask(name: str, value: Any) -> Any:
    """Take a secret out; drop what is called private."""
    return None if name == "private" else str(value).replace(SECRET, "***")


def texts(captured: Capture) -> list[tuple[str, str]]:
    return [(one.name, one.text) for one in captured.fold().payloads]


def dropped(captured: Capture) -> dict[str, int]:
    captured.tracer.shutdown()
    return {key: n for batch in captured.batches() for key, n in batch.drops.items()}


def keep(redact: Any, *payloads: tuple[str, Any]) -> tuple[list[tuple[str, str]], dict[str, int]]:
    with capture(payloads=True, redact=redact) as captured:
        with rollscope.span("work"):
            for name, value in payloads:
                rollscope.payload(name, value)
        return texts(captured), dropped(captured)


def test_what_the_function_gives_is_kept() -> None:
    kept, drops = keep(mask, ("prompt", f"use {SECRET}"), ("private", SECRET), ("x", None))
    assert kept == [("prompt", '"use ***"'), ("x", '"None"')]
    assert drops == {}


def test_the_function_can_be_named_by_its_path() -> None:
    kept, _ = keep(f"{__name__}:mask", ("prompt", SECRET))
    assert kept == [("prompt", '"***"')]


def fails(name: str, value: Any) -> Any:
    raise ValueError(f"cannot read {value}")


def leaves(name: str, value: Any) -> Any:
    raise SystemExit(3)


def is_cancelled(name: str, value: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "redact", [fails, leaves, is_cancelled, "no_such_module:f", f"{__name__}:SECRET"]
)
def test_a_payload_that_the_function_fails_on_is_dropped_counted_and_told_once(
    redact: Callable[[str, Any], Any] | str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rollscope"):
        kept, drops = keep(redact, ("a", SECRET), ("b", SECRET))
    assert kept == []
    assert drops == {"payload.redact": 2}
    (told,) = [one.getMessage() for one in caplog.records if "redact" in one.getMessage()]
    assert SECRET not in told


class Hanging:
    """A function that hangs in each payload until the gate is opened."""

    def __init__(self) -> None:
        self.reached, self.gate = threading.Event(), threading.Event()

    def __call__(self, name: str, value: Any) -> Any:
        self.reached.set()
        self.gate.wait(30)
        return value


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    function = Hanging()
    yield function
    function.gate.set()


def test_spans_are_written_while_the_function_hangs(hanging: Hanging) -> None:
    with capture(payloads=True, redact=hanging) as captured:
        with rollscope.span("before"):
            rollscope.payload("a", 1)
        assert hanging.reached.wait(30)
        with rollscope.span("after"):
            pass
        assert not captured.tracer.flush(0.3)
        names = b"".join(frame.data for frame in captured.sink.frames)
        assert b"before" in names
        assert b"after" in names
        hanging.gate.set()
        assert texts(captured) == [("a", "1")]


def test_what_waits_for_a_function_that_hangs_stays_within_the_bound(hanging: Hanging) -> None:
    drops: Counter[str] = Counter()
    redaction = Redaction(
        hanging,
        FakeClock(),
        lambda contents, reason: drops.update({reason: contents["payload"]}),
        limit_bytes=250_000,
    )
    redaction.start()
    redaction.exchange([(b"t" * 16, 1, 1, "first", 0)])
    assert hanging.reached.wait(30)
    for number in range(40):
        redaction.exchange([(b"t" * 16, 1, number, "long", {"text": ["x" * 65_000]})])
    hanging.gate.set()
    kept = redaction.finish(30)
    redaction.stop()
    assert [payload[2] for payload in kept] == [1, 36, 37, 38, 39]  # the oldest went
    assert drops == {"redact": 36}


def test_a_function_that_does_not_return_is_given_up_counted_and_told_once(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    with (
        caplog.at_level(logging.WARNING, "rollscope"),
        capture(payloads=True, redact=hanging, clock=clock, drain_s=0.01) as captured,
    ):
        with rollscope.span("work"):
            rollscope.payload("hangs", SECRET)
            assert hanging.reached.wait(30)
            rollscope.payload("waits", SECRET)
            assert not captured.tracer.flush(0.05)
            clock.advance(31)
            assert captured.tracer.flush(30)  # nothing waits for it any more
            rollscope.payload("comes", SECRET)
            assert captured.tracer.flush(30)
            hanging.gate.set()
            while not texts(captured):  # it has to come back from where it hung first
                rollscope.payload("again", 1)
        assert {name for name, _ in texts(captured)} == {"again"}
        assert dropped(captured)["payload.redact"] >= 3
    (told,) = [one.getMessage() for one in caplog.records if "redact" in one.getMessage()]
    assert "30 s" in told


def test_what_the_function_still_holds_at_the_end_is_counted(hanging: Hanging) -> None:
    with capture(payloads=True, redact=hanging) as captured:
        with rollscope.span("work"):
            for _ in range(3):
                rollscope.payload("a", SECRET)
        assert hanging.reached.wait(30)
        captured.tracer.shutdown(0.2)
        assert dropped(captured) == {"payload.redact": 3}
        hanging.gate.set()


def test_nothing_that_waits_for_the_function_is_lost_at_the_end() -> None:
    with capture(payloads=True, redact=mask, drain_s=60) as captured:
        with rollscope.span("work"):
            for number in range(90):
                rollscope.payload("a", number)
        captured.tracer.shutdown()
        assert texts(captured) == [("a", f'"{number}"') for number in range(90)]


def test_what_the_function_returns_may_be_anything() -> None:
    kept, _ = keep(lambda name, value: {"n": {1, 2}, "odd": object()}, ("a", 1))
    assert kept[0][1].startswith('{"n":[1,2]')


@pytest.mark.parametrize("wrong", ["mask", 7, "a b:c", ":f", "m:"])
def test_what_is_no_function_is_refused(wrong: object) -> None:
    with pytest.raises(SettingError, match="redact"):
        rollscope.init(redact=wrong)  # type: ignore[arg-type]


def test_a_function_of_a_module_goes_along_to_other_processes() -> None:
    assert function_path(mask) == f"{__name__}:mask"
    assert function_path("a.b:c") == "a.b:c"
    assert function_path(lambda name, value: value) is None
    with capture(payloads=True, redact=mask) as captured:
        env = captured.tracer.child_env({})
    assert (env["ROLLSCOPE_REDACT"], env["ROLLSCOPE_PAYLOADS"]) == (f"{__name__}:mask", "True")


def test_other_processes_keep_nothing_if_they_cannot_have_the_function() -> None:
    with capture(payloads=True, redact=lambda name, value: value) as captured:
        env = captured.tracer.child_env({})
    assert env["ROLLSCOPE_PAYLOADS"] == "False"
    assert "ROLLSCOPE_REDACT" not in env


def test_a_started_process_redacts_too(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("def hide(name, value):\n    return 'hidden'\n")
    program = (
        "import rollscope\nrollscope.init()\nwith rollscope.span('work'):\n"
        f"    rollscope.payload('prompt', '{SECRET}')\nrollscope.shutdown()\n"
    )
    with capture(dir=tmp_path, run="r", payloads=True, redact="rules:hide") as captured:
        env = captured.tracer.child_env()
    env |= {"PYTHONPATH": str(tmp_path), "ROLLSCOPE_SINK": "file"}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, timeout=60)
    (log,) = (tmp_path / "r" / "payloads").glob("*.rsl")
    assert b"hidden" in log.read_bytes()
    assert SECRET.encode() not in log.read_bytes()
