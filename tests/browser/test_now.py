"""The page Now, on a real server: what is open, where it hangs, and for how long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.sweep import unfold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve

SHOWN_TASK = "swe/</script><b>\\u202eevil#"


@pytest.fixture(scope="module")
def site(server: Serve, hanging_run: Path, crashed_run: Path) -> str:
    """Serve a run in which rollouts hang, and one that is over."""
    assert hanging_run.parent == crashed_run.parent
    return server(hanging_run.parent)


@pytest.fixture
def live(site: str, hanging_run: Path) -> str:
    """Say where Now of the run is in which rollouts hang."""
    return f"{site}#/{hanging_run.name}/now"


def test_a_hanging_rollout_comes_with_its_line_and_its_last_error(
    live: str, open_page: OpenPage
) -> None:
    page = open_page(live)
    row = page.get_by_role("table", name="Stuck and slow").locator("tbody tr").first

    expect(row).to_contain_text("overdue")
    expect(row).to_contain_text(SHOWN_TASK)
    expect(row).to_contain_text("ConnectionError: no <i>17</i>")
    expect(page.get_by_text("3 of 3 open need a look")).to_be_visible()

    button = row.get_by_role("button", name="Await stack of")
    button.click()
    drawer = page.get_by_role("dialog", name="Await stack of")
    expect(drawer.locator(".innermost")).to_contain_text("_wait_for_ever")
    expect(drawer.locator(".innermost")).to_contain_text("hanging.py:")
    expect(drawer).to_contain_text("2 other open sessions on the same line")

    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(button).to_be_focused()
    assert page.url == live


def test_a_process_is_asked_where_it_hangs_right_now(live: str, open_page: OpenPage) -> None:
    page = open_page(live)
    page.get_by_role("button", name="Await stack of").first.click()
    drawer = page.get_by_role("dialog")

    with page.expect_response("**/stack?session=*") as asked:
        drawer.get_by_role("button", name="Ask for a fresh one").click()

    assert asked.value.request.method == "POST"
    assert asked.value.json()["is_fresh"]
    expect(drawer.get_by_text("asked just now").first).to_be_visible()
    expect(drawer.locator(".innermost").first).to_contain_text("_wait_for_ever")


def test_ages_tick_though_no_answer_comes(live: str, open_page: OpenPage) -> None:
    page = open_page(live)
    age = page.get_by_role("table", name="Stuck and slow").locator("td[data-title=Age]").first
    expect(age).to_have_text(re.compile(r"\d+ s$"))
    page.route("**/answer/now*", lambda _: None)  # neither answered nor refused
    before = age.inner_text()

    expect(age).not_to_have_text(before)


def test_a_layer_and_its_name_open_the_sessions_of_that_phase(
    live: str, open_page: OpenPage
) -> None:
    page = open_page(live)
    wanted = re.compile(r"/sessions\?f=phase:toolcall%20status:open$")
    panel = page.locator("[data-panel=in-flight-by-phase]")
    expect(panel.get_by_role("link", name="toolcall")).to_have_attribute("href", wanted)

    plot = panel.locator("canvas")
    box = plot.bounding_box()
    assert box is not None
    plot.click(position={"x": box["width"] - 24, "y": box["height"] - 40})
    page.wait_for_url(wanted)


def test_the_tiles_say_what_the_answer_says(live: str, open_page: OpenPage) -> None:
    page = open_page(live)
    run = live.split("/")[-2]
    now = page.request.get(f"{live.split('#')[0]}api/v1/run/{run}/answer/now").json()
    flight = now["in_flight"]

    tile = page.locator(".tile", has_text="In flight")
    expect(tile).to_contain_text(f"{flight['count']} / {flight['capacity']}")
    expect(page.locator(".tile", has_text="Step 5")).to_have_attribute(
        "href", re.compile("/step/5$")
    )
    expect(page.locator(".tile", has_text="Oldest open")).to_have_attribute(
        "href", re.compile(f"/session/{now['oldest']['session_id']}$")
    )
    expect(page.locator("[data-panel=who-waits]")).to_contain_text("Trainer waiting")
    expect(page.get_by_role("table", name="Errors")).to_contain_text("ConnectionError")


def test_a_run_that_is_over_is_shown_as_of_its_end(
    site: str, crashed_run: Path, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/{crashed_run.name}/now")

    expect(page.get_by_text("as of its end")).to_be_visible()
    stuck = page.locator("[data-panel=stuck-and-slow]")
    expect(stuck.get_by_role("link")).to_have_attribute("href", re.compile("f=status:lost$"))
    page.get_by_role("button", name="Sessions in flight by phase as a table").click()
    table = page.get_by_role("table", name="Sessions in flight by phase")
    expect(table.locator("thead")).to_contain_text("generate")


def test_everything_fits_a_phone(live: str, open_page: OpenPage) -> None:
    page = open_page(live, viewport=PHONE)
    page.get_by_role("button", name="Await stack of").first.click()
    box = page.get_by_role("dialog").bounding_box()

    assert box is not None
    assert box["x"] == 0
    assert box["width"] == PHONE["width"]
    assert box["y"] + box["height"] == PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_no_replay_is_blamed_on_slots_while_sessions_are_open(
    live: str, open_page: OpenPage
) -> None:
    page = open_page(live.replace("/now", "/step/5"))
    unfold(page)
    expect(page.locator("[data-panel=what-if]")).to_contain_text("or sessions have not ended")
