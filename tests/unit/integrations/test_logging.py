"""Log records that know which session they belong to."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations import logging as integration
from rollscope.testing.capture import Capture, capture

FORMAT = "%(rs_run)s|%(rs_step)s|%(rs_task)s|%(rs_session)s|%(rs_phase)s|%(message)s"


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Give what a logger of our own has written, and leave logging as it was."""
    before = logging.getLogRecordFactory()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORMAT))
    written: list[str] = []
    handler.terminator = ""
    emit = handler.emit

    def keep(record: logging.LogRecord) -> None:
        emit(record)
        written.append(stream.getvalue())
        stream.seek(0)
        stream.truncate()

    handler.emit = keep  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield written
    log.removeHandler(handler)
    integration.uninstall()
    assert logging.getLogRecordFactory() is before


log = logging.getLogger("host.program")


def events(captured: Capture) -> list[dict[str, Any]]:
    return [event.attrs for event in captured.fold().events if event.name == "log"]


def test_a_record_names_run_step_task_session_and_phase(lines: list[str]) -> None:
    integration.install()
    with capture(run="logged") as captured:
        with rs.step(7), rs.task("gsm8k/1"), rs.session(), rs.phase("reward"), rs.span("inner"):
            log.info("scored %d", 3)
        session = captured.named("session").span_id
        assert events(captured) == []

    assert lines == [f"logged|7|gsm8k/1|{session}|reward|scored 3"]


def test_outside_of_everything_a_format_does_not_fail(lines: list[str]) -> None:
    integration.install()
    log.info("off")
    with capture(run="logged"):
        log.info("on")
        with rs.span("alone"):
            log.info("in a span")

    assert lines == ["-|-|-|-|-|off", "logged|-|-|-|-|on", "logged|-|-|-|-|in a span"]


def test_a_session_that_lives_elsewhere_is_named(lines: list[str]) -> None:
    integration.install(events=True)
    with capture(run="logged") as captured:
        with rs.step(3), rs.task("item"), rs.session() as session:
            carrier = rs.inject()

        def work() -> None:
            with rs.attach(carrier):
                log.warning("from afar")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        (event,) = (event for event in captured.fold().events if event.name == "log")
        assert event.session_id == captured.named("session").span_id

    assert session.ref is not None
    assert lines == [f"logged|3|item|{session.ref.span_id:016x}|-|from afar"]


def test_warnings_become_events_of_their_session(lines: list[str]) -> None:
    integration.install(events=True)
    with capture() as captured:
        log.warning("outside")
        with rs.task("item"), rs.session():
            log.info("fine")
            log.warning("slow: %s", "<script>")
            try:
                raise ValueError("no")
            except ValueError:
                log.exception("failed")
        found = events(captured)
        session = captured.named("session")

    places = [attrs.pop("place") for attrs in found]
    assert all(place.startswith("test_logging.py:") for place in places)
    assert found == [
        {"level": "WARNING", "logger": "host.program", "message": "slow: <script>"},
        {
            "level": "ERROR",
            "logger": "host.program",
            "message": "failed",
            "error_type": "ValueError",
        },
    ]
    assert session.attrs["log_records"] == 2


def test_events_are_bounded_and_all_are_counted(lines: list[str]) -> None:
    integration.install(events=logging.INFO, most=3)
    with capture() as captured:
        for _ in range(2):
            with rs.task("item"), rs.session(), rs.phase("env"):
                for number in range(10):
                    log.info("line %d", number)
                log.debug("not of that level")
        assert [attrs["message"] for attrs in events(captured)] == [
            "line 0",
            "line 1",
            "line 2",
        ] * 2
        counts = [span.attrs.get("log_records") for span in captured.spans()]
    assert sorted(filter(None, counts)) == [10, 10]
    assert len(lines) == 22


def test_what_rollscope_says_itself_is_no_event(lines: list[str]) -> None:
    integration.install(events=True)
    with capture() as captured, rs.task("item"), rs.session():
        logging.getLogger("rollscope.store").warning("ours")
        logging.getLogger("rollscopes").warning("theirs")
        assert [attrs["message"] for attrs in events(captured)] == ["theirs"]


def test_odd_records_are_kept_as_far_as_they_go(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    monkeypatch.setattr(log, "propagate", False)  # xdist cannot carry half a character home
    integration.install(events=True)

    class Silent:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with capture() as captured, rs.task("item"), rs.session():
        log.warning("%d of %d", 1)
        log.warning(Silent())
        log.warning("x" * 100_000)
        log.warning("broken \ud800 text")
        found = [attrs["message"] for attrs in events(captured)]

    assert found[0] == "%d of %d"
    assert found[1] == "<Silent>"
    assert len(found[2]) < 1_001
    assert found[3] == "broken \\ud800 text"


def test_installing_again_changes_the_arguments_only(lines: list[str]) -> None:
    integration.install(events=True)
    first = logging.getLogRecordFactory()
    integration.install()
    assert logging.getLogRecordFactory() is first
    with capture() as captured, rs.task("item"), rs.session():
        log.warning("no event")
        assert events(captured) == []


def test_a_factory_put_around_ours_stays_and_ours_does_nothing(lines: list[str]) -> None:
    before = logging.getLogRecordFactory()
    integration.install()
    ours = logging.getLogRecordFactory()

    def theirs(*args: Any, **kwargs: Any) -> logging.LogRecord:
        return ours(*args, **kwargs)

    logging.setLogRecordFactory(theirs)
    try:
        integration.uninstall()
        assert logging.getLogRecordFactory() is theirs
        assert not hasattr(logging.makeLogRecord({}), "rs_run")
    finally:
        logging.setLogRecordFactory(before)


def test_importing_the_integration_installs_nothing() -> None:
    code = (
        "import json, logging, sys; before = logging.getLogRecordFactory();"
        "import rollscope.integrations.logging as ours;"
        "print(json.dumps([logging.getLogRecordFactory() is before, 'duckdb' in sys.modules]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert json.loads(shown.stdout) == [True, False]
