"""The redact function decides what is kept of payloads, and fails closed."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollscope
from rollscope.errors import SettingError
from rollscope.instrument.redaction import function_path
from rollscope.testing.capture import Capture, capture

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


@pytest.mark.parametrize("redact", [fails, leaves, "no_such_module:f", f"{__name__}:SECRET"])
def test_a_payload_that_the_function_fails_on_is_dropped_counted_and_told_once(
    redact: Callable[[str, Any], Any] | str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rollscope"):
        kept, drops = keep(redact, ("a", SECRET), ("b", SECRET))
    assert kept == []
    assert drops == {"payload.redact": 2}
    (told,) = [one.getMessage() for one in caplog.records if "redact" in one.getMessage()]
    assert SECRET not in told


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
