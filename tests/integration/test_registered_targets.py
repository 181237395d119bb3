"""Targets that are registered with a running server, by request and by command."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from rollscope.collect import scraping as module
from rollscope.collect.expiry import Expiry
from rollscope.stack.processes import identify
from rollscope.stack.statefile import Lock, StackState, StateDir
from tests.integration.exposing import exposing
from tests.integration.served import TOKEN, Site, served
from tests.integration.test_scraping import at, change, end, recording, scraping, until
from tests.monitoring.prometheus import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Out = pytest.CaptureFixture[str]


async def listed(site: Site) -> Any:
    return (await site.api("targets")).json


async def urls(site: Site) -> list[str]:
    return [one["url"] for one in (await listed(site))["targets"]]


async def command(*words: str) -> int:
    """Run a command as a user would, while the server goes on."""
    return await asyncio.to_thread(main, ["targets", *words])


def test_a_registered_target_outlives_the_server_and_goes_when_removed(tmp_path: Path) -> None:
    async def first(site: Site) -> None:
        target = {"url": "h:1", "replica": "r0", "labels": {"rack": "3"}, "run": "live"}
        assert (await change(site, "POST", "../targets", target)).status == 200
        assert (await change(site, "POST", "../targets", {"url": "h:2/?key=x"})).status == 200

    async def second(site: Site) -> None:
        async def both() -> Any:
            found = (await listed(site))["targets"]
            return found if len(found) == 2 else None

        one, other = await until(both)
        assert (one["replica"], one["labels"], one["run"], one["source"]) == (
            "r0",
            {"rack": "3"},
            "live",
            "request",
        )
        assert (other["url"], other["run"]) == ("http://h:2/metrics?key=x", None)
        assert (one["is_discovered"], other["is_discovered"]) == (True, False)
        assert b"h:2" not in (await site.api("sd")).body
        assert (await change(site, "DELETE", "../targets?url=h:1&run=live")).status == 204
        assert (await change(site, "DELETE", "../targets?url=h:1")).status == 404

    async def third(site: Site) -> None:
        async def loaded() -> list[str]:
            return await urls(site)

        assert await until(loaded) == ["http://h:2/metrics?key=x"]

    for visit in (first, second, third):
        at(tmp_path, visit)


def test_what_the_server_was_started_with_is_not_changed_by_request(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        for method, path, body in (
            ("POST", "../targets", {"url": "h:1"}),
            ("DELETE", "../targets?url=h:1", None),
        ):
            answer = await change(site, method, path, body)
            assert answer.status == 409
            assert "options" in answer.json["error"]
        answer = await change(site, "POST", "live/targets", {"url": "h:1", "run": "other"})
        assert answer.status == 400
        assert await urls(site) == ["http://h:1/metrics"]

    at(tmp_path, visit, scrape=scraping("r0=h:1"))
    assert not list(tmp_path.glob(".rollscope*"))


def test_a_target_goes_by_itself_some_time_after_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "Expiry", lambda: Expiry(after_s=0.1))
    with exposing() as exposer:
        log = recording(tmp_path)

        async def visit(site: Site) -> None:
            target = {"url": exposer.url, "run": "live"}
            assert (await change(site, "POST", "../targets", target)).status == 200

            async def is_asked() -> bool:
                return exposer.asked > 1

            await until(is_asked)
            assert await urls(site) == [exposer.url]
            end(log)

            async def has_gone() -> Any:
                return (await listed(site))["gone"]

            (gone,) = await until(has_gone)
            assert (gone["url"], gone["run"]) == (exposer.url, "live")
            assert "nothing was recorded" in gone["why"]
            assert await urls(site) == []

        at(tmp_path, visit, scrape=scraping())
    assert "is asked no more" in caplog.text


def test_the_commands_add_list_and_remove(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def visit(site: Site) -> None:
        to = ("--server", f"{site.url}/?token={TOKEN}")
        assert await command("add", "r0=h:1", "h:2", "--label", "rack=3", *to) == 0
        assert await command("list", *to) == 0
        assert await command("remove", "h:2", *to) == 0
        assert await command("remove", "h:2", *to) == 1
        monkeypatch.setenv("ROLLSCOPE_TOKEN", TOKEN)
        assert await command("list", "--json", "--server", site.url) == 0

    at(tmp_path, visit)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[:2] == [f"http://h:{n}/metrics is asked from now on." for n in (1, 2)]
    assert any("r0" in line and "http://h:1/metrics" in line for line in lines[2:])
    assert shown.err == (
        "rollscope: No such target was added without a run. GET lists those there are.\n"
    )
    (left,) = json.loads(lines[-1])["targets"]
    assert (left["replica"], left["labels"]) == ("r0", {"rack": "3"})


def test_the_commands_find_the_server_that_runs_here(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLSCOPE_STATE_DIR", str(tmp_path / "state"))
    where = StateDir(tmp_path / "state" / "server")
    where.prepare()
    where.token_file.write_text(TOKEN)

    async def visit(site: Site) -> None:
        own = identify(os.getpid())
        assert own is not None
        state = StackState(
            supervisor=own,
            page=f"{site.url}/",
            runs=str(tmp_path),
            token_file=str(where.token_file),
            members=[],
        )
        where.write(state)
        lock = Lock.take(where)
        assert lock is not None
        assert await command("add", "h:1") == 0
        lock.release()
        assert await urls(site) == ["http://h:1/metrics"]

    at(tmp_path / "runs", visit)
    assert "which `rollscope server` runs here" in capsys.readouterr().err


def test_a_server_without_a_token_takes_commands_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(tmp_path, token=None) as site:
            assert await command("add", "h:1", "--server", site.url) == 0
            assert await urls(site) == ["http://h:1/metrics"]

    asyncio.run(scenario())


def test_refusals_are_told_in_a_sentence(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "wrong").write_text("a-wrong-token")
    told: list[tuple[Callable[[Site], tuple[str, ...]], int, str]] = [
        (lambda site: ("list", "--server", site.url), 1, "the token is missing or wrong"),
        (
            lambda site: ("list", "--server", site.url, "--token-file", str(tmp_path / "wrong")),
            1,
            "the token is missing or wrong",
        ),
        (lambda _: ("list", "--server", f"http://127.0.0.1:{free_port()}"), 1, "no server answers"),
        (lambda _: ("list", "--server", "ftp://x"), 2, "is no address"),
        (lambda _: ("list", "--token-file", str(tmp_path / "none")), 1, "cannot read the token"),
        (lambda _: ("add", "file:///etc/passwd"), 2, "is no http:// or https:// address"),
        (lambda _: ("add", "http://me:secret@h/"), 2, "nothing before it"),
        (lambda _: ("add", "h:1", "--label", "x"), 2, "is no KEY=VALUE"),
    ]

    async def visit(site: Site) -> None:
        for words, code, why in told:
            assert await command(*words(site)) == code
            said = capsys.readouterr().err
            assert why in said
            assert "secret" not in said

    with exposing() as stranger:
        at(tmp_path / "runs", visit)
        assert main(["targets", "list", "--server", f"http://{stranger.address}"]) == 1
    assert "is no Rollscope server" in capsys.readouterr().err
