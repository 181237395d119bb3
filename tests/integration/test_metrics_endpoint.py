"""`/metrics` and `/healthz` of a real server: who may ask, what they say, and for how long."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rollscope.errors import StoreError
from rollscope.exposing.runs import RunExposition
from rollscope.metrics.exposition import TextFormat
from rollscope.testing import RunShape, generate_run
from tests.integration.served import served
from tests.integration.support import PATIENCE_S
from tests.integration.test_server_process import start_view

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from rollscope.metrics.families import Exposed
    from rollscope.store.embedded import RunStore
    from tests.integration.support import Lab

parse_openmetrics: Any = openmetrics.text_string_to_metric_families  # untyped
P = ParamSpec("P")
SMALL = RunShape(steps=2, tasks_per_step=4, rollout_processes=2, late_verdict_share=0.3)
OPEN = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def in_a_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def _read(text: str) -> Samples:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def _value(samples: Samples, name: str, **labels: str) -> float:
    """Add up what has at least these labels."""
    wanted = frozenset(labels.items())
    return sum(value for (known, own), value in samples.items() if known == name and wanted <= own)


@in_a_loop
async def test_both_formats_are_what_their_referees_take(tmp_path: Path) -> None:
    generate_run(tmp_path / "one", SMALL)
    async with served(tmp_path) as site:
        plain = await site.ask("/metrics")
        rich = await site.ask("/metrics", Accept=OPEN)
    assert plain.headers["Content-Type"] == TextFormat.PROMETHEUS.value
    assert rich.headers["Content-Type"] == TextFormat.OPENMETRICS.value
    families = {one.name: one for one in parse_openmetrics(rich.text)}
    lengths = families["rollscope_session_duration_seconds"]
    shown = [one.exemplar for one in lengths.samples if one.exemplar is not None]
    assert all(re.fullmatch("[0-9a-f]{32}", one.labels["trace_id"]) for one in shown)
    assert any("#" in one.labels["session"] for one in shown)
    samples = _read(plain.text)
    assert _value(samples, "rollscope_sessions_started_total", run="one") == 2 * 4 * 4
    promtool = shutil.which("promtool")
    assert promtool is not None
    checked = await asyncio.to_thread(
        subprocess.run,
        [promtool, "check", "metrics"],
        input=plain.text.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("", False),
        ("br, gzip;q=0", False),
        ("gzip; q=0.00", False),
        ("x-gzipped", False),
    ],
)
@in_a_loop
async def test_text_is_packed_for_those_who_take_it_so(
    tmp_path: Path, accepted: str, is_packed: bool
) -> None:
    async with served(tmp_path) as site:
        answer = await site.ask("/metrics", Accept_Encoding=accepted)
    assert answer.headers.get("Content-Encoding") == ("gzip" if is_packed else None)
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert _read(answer.text)


@in_a_loop
async def test_a_server_without_runs_tells_of_itself(tmp_path: Path) -> None:
    async with served(tmp_path / "none", is_local=True) as site:
        answer = await site.ask("/metrics", bearer=None)
        health = await site.ask("/healthz", bearer=None, Host="10.0.0.7:80")
    samples = _read(answer.text)
    assert {name for name, _ in samples} == {"rollscope_server_info"}
    assert (health.status, health.json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("is_local", "bearer", "headers", "status"),
    [
        (True, None, {}, 200),
        (True, "wrong", {}, 200),
        (True, None, {"Host": "evil.example"}, 403),
        (True, None, {"Origin": "https://evil.example"}, 403),
        (True, None, {"Sec_Fetch_Site": "cross-site"}, 403),
        (True, None, {"X_Forwarded_For": "10.0.0.7"}, 401),
        (False, None, {}, 401),
        (False, "wrong", {}, 401),
        (False, "right", {}, 200),
        (False, "right", {"Host": "gpu-07.cluster:7077"}, 200),
    ],
)
@in_a_loop
async def test_neighbours_need_no_token_and_others_do(
    tmp_path: Path, is_local: bool, bearer: str | None, headers: dict[str, str], status: int
) -> None:
    async with served(tmp_path, token="right", is_local=is_local) as site:  # noqa: S106
        answer = await site.ask("/metrics", bearer=bearer, **headers)
    assert answer.status == status


@in_a_loop
async def test_runs_that_ended_long_ago_and_damaged_ones_hide_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "broken", "new"):
        generate_run(tmp_path / name, SMALL)
    long_ago_s = time.time() - 11 * 60
    for log in (tmp_path / "old" / "log").iterdir():
        os.utime(log, (long_ago_s, long_ago_s))
    catch_up: Callable[[RunExposition, RunStore], bool] = RunExposition.catch_up

    def fail(self: RunExposition, store: RunStore) -> bool:
        if store.path.name == "broken":
            raise StoreError("a segment cannot be read")
        return catch_up(self, store)

    monkeypatch.setattr(RunExposition, "catch_up", fail)
    async with served(tmp_path) as site:
        samples = _read((await site.ask("/metrics")).text)
    shown = {dict(labels)["run"] for name, labels in samples if name == "rollscope_run_info"}
    assert shown == {"new"}
    assert _value(samples, "rollscope_runs", state="ended") == 2
    assert _value(samples, "rollscope_runs", state="damaged") == 1


@in_a_loop
async def test_of_many_runs_the_newest_are_shown(tmp_path: Path) -> None:
    tiny = RunShape(steps=1, tasks_per_step=1, group_size=1, rollout_processes=1)
    for number in range(10):
        generate_run(tmp_path / f"run-{number}", replace(tiny, start_ns=tiny.start_ns + number))
    async with served(tmp_path) as site:
        for _ in range(2):
            samples = _read((await site.ask("/metrics")).text)
            shown = {dict(own)["run"] for name, own in samples if name == "rollscope_run_info"}
            assert shown == {f"run-{number}" for number in range(2, 10)}
        assert len(site.library.opened()) == 8
    assert _value(samples, "rollscope_runs", state="ended") == 10


@in_a_loop
async def test_a_slow_run_is_shown_as_it_was_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("quick", "slow"):
        generate_run(tmp_path / name, SMALL)
    look: Callable[[RunExposition, RunStore], list[Exposed]] = RunExposition.look
    may_go_on, looks = threading.Event(), []

    def hindered(self: RunExposition, store: RunStore) -> list[Exposed]:
        looks.append(store.path.name)
        if store.path.name == "slow" and looks.count("slow") > 1:
            may_go_on.wait(PATIENCE_S)
        return look(self, store)

    monkeypatch.setattr(RunExposition, "look", hindered)
    async with served(tmp_path) as site:
        first = _read((await site.ask("/metrics")).text)
        hurried = {"X_Prometheus_Scrape_Timeout_Seconds": "0.7"}
        second = _read((await site.ask("/metrics", **hurried)).text)
        may_go_on.set()
    for samples in (first, second):
        for name in ("quick", "slow"):
            assert _value(samples, "rollscope_sessions_started_total", run=name) == 32
    took_s = _value(second, "rollscope_exposing_seconds", run="slow")
    assert took_s > _value(second, "rollscope_exposing_seconds", run="quick")
    assert looks.count("quick") == 2


@in_a_loop
async def test_those_who_ask_at_once_share_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate_run(tmp_path / "one", SMALL)
    look: Callable[[RunExposition, RunStore], list[Exposed]] = RunExposition.look
    has_begun, may_go_on, looks = threading.Event(), threading.Event(), []

    def counted(self: RunExposition, store: RunStore) -> list[Exposed]:
        looks.append(store.path.name)
        has_begun.set()
        may_go_on.wait(PATIENCE_S)
        return look(self, store)

    monkeypatch.setattr(RunExposition, "look", counted)
    async with served(tmp_path) as site:
        asked = [asyncio.create_task(site.ask("/metrics")) for _ in range(8)]
        assert await asyncio.to_thread(has_begun.wait, PATIENCE_S)
        assert (await site.ask("/healthz")).status == 200  # so all of them have been let in
        may_go_on.set()
        answers = await asyncio.gather(*asked)
    assert [answer.status for answer in answers] == [200] * 8
    assert len(looks) < 8


def test_counters_go_on_where_they_were_when_a_server_was_killed(lab: Lab) -> None:
    program = """
import rollscope as rs
rs.init(run="run", dir="runs")
for number in range(20):
    with rs.task("swe/%d" % number), rs.session(sample=0) as session:
        rs.count("calls", 2, tool="python")
        session.finish("accepted")
rs.shutdown()
"""
    found = []
    for _ in range(2):
        lab.finish(program)
        process, address = start_view(lab, "--dir", lab.folder / "runs")
        url = address.partition("?")[0] + "metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310  (http only)
            samples = _read(answer.read().decode())
        found.append(
            (
                _value(samples, "rollscope_sessions_finished_total", outcome="accepted"),
                _value(samples, "rollscope_user_calls_total", tool="python"),
                _value(samples, "rollscope_session_duration_seconds_count", family="swe"),
            )
        )
        process.kill()
        process.wait(PATIENCE_S)
    assert found == [(20, 40, 20), (40, 80, 40)]
