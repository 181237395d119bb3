"""Inference engines on the page, on a real server that asks real programs for their metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.integration.exposing import exposing, sglang_text, vllm_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.exposing import Exposer


@pytest.fixture(scope="module")
def engine() -> Iterator[Exposer]:
    """Give an engine that exposes what vLLM does."""
    with exposing() as exposer:
        yield exposer


@pytest.fixture(scope="module")
def site(server: Serve, hanging_run: Path, engine: Exposer) -> Iterator[str]:
    """Serve a run with two engines and one that is down."""
    with exposing() as other, exposing() as down:
        other.text = sglang_text()
        down.answer = lambda handler: handler.send_error(500)
        yield server(
            hanging_run,
            "--no-token",
            "--scrape-every=0.5",
            f"--scrape=r0={engine.url}",
            f"--scrape=r1={other.url}",
            f"--scrape=r2={down.url}",
        )


@pytest.fixture(scope="module")
def quiet_site(server: Serve, crashed_run: Path) -> str:
    """Serve a run whose engines nobody asks."""
    return server(crashed_run)


def test_gauges_of_engines_appear_beside_the_sessions(
    site: str, engine: Exposer, hanging_run: Path, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/{hanging_run.name}/now")
    page.get_by_role("button", name="By replica", exact=True).click()
    table = page.get_by_role("table", name="Replicas")
    first, second = table.locator("tr", has_text="r0"), table.locator("tr", has_text="r1")

    expect(first.locator("[data-title='KV in use']")).to_have_text("25 %")
    expect(first.locator("[data-title='Engine runs, queues']")).to_have_text("17, 3")
    expect(second.locator("[data-title='KV in use']")).to_have_text("50 %")
    expect(second.locator("[data-title='Tokens/s']")).to_have_text("1,800")
    expect(table.locator("tr", has_text="r2")).to_contain_text("engine down")

    engine.text = vllm_text(3_000, kv=0.75)
    expect(first.locator("[data-title='KV in use']")).to_have_text("75 %")
    expect(first.locator("[data-title='Prefix hits']")).to_have_text("75 %")


def test_engines_are_drawn_over_the_time_of_the_run_and_of_a_session(
    site: str, hanging_run: Path, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/{hanging_run.name}/now")
    panel = page.locator("[data-panel=engines]")

    expect(panel.get_by_role("img", name="KV in use by replica")).to_be_visible()
    panel.get_by_role("button", name="Waiting").click()
    panel.get_by_role("button", name="Waiting by replica as a table").click()
    expect(panel.get_by_role("table", name="Waiting by replica")).to_contain_text("r1")
    expect(panel.get_by_role("table").locator("tbody tr").last).to_contain_text("5")

    answer = page.request.get(
        f"{site}api/v1/run/{hanging_run.name}/answer/sessions?filter=status:open&limit=1"
    )
    session = answer.json()["sessions"][0]["row"]["span_id"]
    page.goto(f"{site}#/{hanging_run.name}/session/{session}")
    expect(panel.get_by_role("img", name="KV in use by replica")).to_be_visible()


def test_nothing_is_said_of_engines_where_none_is_asked(
    quiet_site: str, crashed_run: Path, open_page: OpenPage
) -> None:
    page = open_page(f"{quiet_site}#/{crashed_run.name}/now")
    hosts = page.get_by_role("table", name="Hosts")

    expect(hosts).to_be_visible()
    expect(page.locator("[data-panel=engines]")).to_have_count(0)
    expect(hosts).not_to_contain_text("KV in use")
