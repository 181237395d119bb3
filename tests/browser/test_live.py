"""The page on a run that lives: news come by themselves, and so does a server that was away."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.sweep import settle
from tests.browser.tunnel import Tunnel
from tests.integration.support import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page, Route

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

LOST = "Failed to load resource"
"""What the browser writes to its console about a server that is away."""

IDLE_BYTES_PER_S = 5_000

TALKING = """
    import sys
    import rollscope as rs

    rs.init(run="talking")
    spans = []
    print("ready", flush=True)
    for line in sys.stdin:
        with rs.task(line.strip()):
            session = rs.session(sample=0).__enter__()
            spans += [session, rs.phase("generate").__enter__()]
        print("begun", flush=True)
"""
"""Starts a session that stays open for every task it is given, and says so."""


@pytest.fixture(scope="module")
def talking(module_lab: Lab) -> Callable[[str], None]:
    """Give a function that lets a program start a session."""
    program = module_lab.start(TALKING)
    stdin, stdout = program.stdin, program.stdout
    assert stdin is not None
    assert stdout is not None
    assert stdout.readline() == "ready\n"

    def begin(task: str) -> None:
        stdin.write(f"{task}\n")
        stdin.flush()
        assert stdout.readline() == "begun\n"

    begin("first")
    return begin


@pytest.fixture(scope="module")
def site(server: Serve, talking: Callable[[str], None], module_lab: Lab) -> str:
    """Serve the run that is recorded."""
    talking("served")
    return server(module_lab.run.parent)


@pytest.fixture
def tunnel(site: str) -> Iterator[Tunnel]:
    """Put a tunnel before the server."""
    with Tunnel(site) as made:
        yield made


NO_SECONDS = """{
    const begin = window.setInterval;
    window.setInterval = (work, ms, ...rest) => ms === 1000 ? 0 : begin(work, ms, ...rest);
}"""
"""Takes the beat away by which panels ask now and then, though nothing has come."""


def wait_for_task(page: Page, task: str) -> None:
    """Wait until a task is on the page."""
    page.wait_for_function("(task) => document.body.innerText.includes(task)", arg=task)


def test_spans_come_to_the_timeline_by_themselves(
    site: str, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/talking/timeline")
    settle(page)
    page.get_by_role("button", name="Table", exact=True).click()
    listed = page.get_by_role("table", name="Spans in view").locator("tbody tr")
    expect(listed).not_to_have_count(0)

    for number in range(6):
        before = listed.count()
        talking(f"drawn-{number}")
        expect(listed).not_to_have_count(before)


def test_panels_follow_the_run_however_close_news_come(
    site: str, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/talking/now")
    page.add_init_script(NO_SECONDS)
    page.reload()
    expect(page.get_by_role("table", name="Stuck and slow")).to_contain_text("first")

    for number in range(3):
        talking(f"listed-{number}")
        wait_for_task(page, f"listed-{number}")


def test_a_page_that_hears_no_events_asks_instead(
    site: str, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/talking/now")
    page.route("**/api/v1/events*", lambda _: None)  # as a proxy that keeps them back
    page.reload()
    with page.expect_response("**/run/talking/progress") as asked:
        pass

    assert asked.value.status == 200
    talking("asked-for")
    wait_for_task(page, "asked-for")
    expect(page.locator(".statebar")).to_have_count(0)


def test_a_page_whose_stream_breaks_asks_and_tries_again(
    site: str, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    tried: list[Route] = []

    def refuse(route: Route) -> None:
        tried.append(route)
        route.abort()

    page = open_page(f"{site}#/talking/now", forgiven=LOST)
    page.route("**/api/v1/events*", refuse)
    page.reload()
    for number in range(2):
        talking(f"broken-{number}")
        wait_for_task(page, f"broken-{number}")
    expect(page.locator(".statebar")).to_have_count(0)
    assert len(tried) > 1

    page.unroute("**/api/v1/events*")
    expect(page.get_by_role("button", name="Live", exact=True)).to_be_visible()


def test_a_tunnel_that_drops_is_told_and_mended(
    tunnel: Tunnel, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    page = open_page(f"{tunnel.url}#/talking/now", forgiven=LOST)
    live = page.get_by_role("button", name="Live", exact=True)
    table = page.get_by_role("table", name="Stuck and slow")
    expect(live).to_be_visible()
    expect(table).to_contain_text("first")

    tunnel.cut()
    talking("started-in-the-dark")
    alarm = page.locator(".statebar")
    expect(alarm).to_contain_text("Lost the server, next try in")
    expect(table).to_contain_text("first")

    tunnel.mend()
    expect(live).to_be_visible()
    expect(alarm).to_have_count(0)
    wait_for_task(page, "started-in-the-dark")


def test_a_tunnel_that_hangs_without_a_word_is_noticed(tunnel: Tunnel, open_page: OpenPage) -> None:
    page = open_page(f"{tunnel.url}#/talking/now", forgiven=LOST)
    page.clock.install()
    page.reload()  # timers that began before the clock was installed do not go by it
    live = page.get_by_role("button", name="Live", exact=True)
    expect(live).to_be_visible()

    tunnel.hang()
    page.wait_for_timeout(2_000)  # what is on its way arrives, or it would break the silence
    page.clock.fast_forward(60_000)
    expect(page.locator(".statebar")).to_contain_text("Lost the server")

    tunnel.flow()
    page.clock.resume()
    expect(live).to_be_visible()


@contextmanager
def viewer(lab: Lab, port: int) -> Iterator[str]:
    """Serve the runs at a port for the length of the block."""
    view = lab.command("view", lab.run.parent, "--no-token", "--quiet", "--port", port)
    process = subprocess.Popen(view, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(port), "the server listens")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_a_server_that_starts_again_is_found_without_a_reload(
    module_lab: Lab, talking: Callable[[str], None], open_page: OpenPage
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with viewer(module_lab, port) as url:
        page = open_page(f"{url}#/talking/timeline", forgiven=LOST)
        live = page.get_by_role("button", name="Live", exact=True)
        expect(live).to_be_visible()
        page.evaluate("window.isSamePage = true")
    expect(page.locator(".statebar")).to_contain_text("Lost the server")

    with viewer(module_lab, port):
        expect(live).to_be_visible()
        page.get_by_role("button", name="Table", exact=True).click()
        listed = page.get_by_role("table", name="Spans in view").locator("tbody tr")
        expect(listed).not_to_have_count(0)
        before = listed.count()
        talking("started-later")
        expect(listed).not_to_have_count(before)
        assert page.evaluate("window.isSamePage")


def answers(port: int) -> bool:
    """Say whether somebody listens at a port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_a_quiet_run_costs_little_traffic(tunnel: Tunnel, open_page: OpenPage) -> None:
    page = open_page(f"{tunnel.url}#/talking/now")
    settle(page)
    now = "**/answer/now*"
    with page.expect_response(now), page.expect_response("**/answer/hosts*"):
        pass
    began, before = time.monotonic(), tunnel.received
    for _ in range(3):
        with page.expect_response(now), page.expect_response("**/answer/hosts*"):
            pass
    rate = (tunnel.received - before) / (time.monotonic() - began)

    print(f"{rate:,.0f} bytes/s")  # noqa: T201  (a figure worth seeing)
    assert rate < IDLE_BYTES_PER_S
