"""Trying the wires of a real server: what is said is true, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from tests.integration.served import Answer, served

if TYPE_CHECKING:
    from pathlib import Path

WIRING = "/api/v1/run/first/wiring"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Give a folder with one run."""
    tracer = rs.Tracer(run="first", dir=str(tmp_path / "runs"))
    with tracer.task("gsm8k/1"), tracer.session(sample=0):
        pass
    tracer.shutdown()
    return tmp_path / "runs"


def ask(runs: Path, *asked: tuple[str, str, dict[str, str | None]]) -> list[Answer]:
    """Give what a server answers: method, address, and what is said of the asker."""

    async def visit() -> list[Answer]:
        async with served(runs) as site:
            return [
                await site.ask(path, method, **headers)  # type: ignore[arg-type]  # a token may be None
                for method, path, headers in asked
            ]

    return asyncio.run(visit())


def test_metrics_are_fetched_as_prometheus_would(runs: Path) -> None:
    (answer,) = ask(runs, ("POST", f"{WIRING}?test=prometheus", {}))

    assert answer.json["is_good"], answer.json
    assert "every line can be read" in answer.json["sentence"]


def test_a_test_span_comes_back_and_stays_nowhere(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = sorted(runs.rglob("*.rsl"))

    tried, listed = ask(runs, ("POST", f"{WIRING}?test=otlp", {}), ("GET", "/api/v1/runs", {}))

    assert tried.json["is_good"], tried.json
    assert "Nothing was kept" in tried.json["sentence"]
    assert [run["name"] for run in listed.json["runs"]] == ["first"]
    assert sorted(runs.rglob("*.rsl")) == before
    assert list(scratch.glob("rollscope-wiring-*")) == []


def test_a_program_that_was_not_named_is_not_asked(runs: Path) -> None:
    tried, links, of_session = ask(
        runs,
        ("POST", f"{WIRING}?test=grafana", {}),
        ("GET", "/api/v1/run/first/links", {}),
        ("GET", "/api/v1/run/first/links?session=gsm8k/1%230", {}),
    )

    assert tried.json == {"is_good": False, "sentence": "Its address was not given to the server."}
    assert links.json == of_session.json == {"links": []}


def test_only_the_page_itself_may_try(runs: Path) -> None:
    evil = {"Origin": "http://evil.example"}

    refused = ask(
        runs,
        ("POST", f"{WIRING}?test=http://evil.example/", {}),
        ("POST", f"{WIRING}?test=otlp", {"bearer": None}),
        ("POST", f"{WIRING}?test=otlp", {**evil}),
        ("GET", WIRING, {"bearer": None}),
    )

    assert [answer.status for answer in refused] == [400, 403, 403, 401]


def test_the_text_names_the_address_that_the_page_came_from(runs: Path) -> None:
    (answer,) = ask(runs, ("GET", WIRING, {"Host": "localhost:1234"}))
    assert "http://localhost:1234" in json.dumps(answer.json)
