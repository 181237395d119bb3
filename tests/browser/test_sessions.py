"""The pages Sessions, Session and Compare, on a real server: finding, reading, comparing."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.conftest import PHONE
from tests.browser.hostile import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

expect.set_options(timeout=20_000)  # machines that test are busy

SHAPE = RunShape(steps=8, queue_share=0.5, retry_share=0.4, dying_process=False)
SAFE = HOSTILE.replace("\u202e", r"\u202e").replace("\u0007", r"\u0007")
"""The hostile text as it is shown."""


@pytest.fixture(scope="module")
def site(server: Serve, module_lab: Lab, hanging_run: Path) -> str:
    """Serve two generated runs, one with hostile text and what was said, one that hangs."""
    folder = hanging_run.parent
    generate_run(folder / "many", SHAPE)
    generate_run(folder / "other", RunShape(seed=3, steps=4, dying_process=False))
    command = [sys.executable, "-m", "tests.browser.hostile"]
    hostile = module_lab.launch(command, env={"ROLLSCOPE_RUN": "hostile"})
    _, complaints = hostile.communicate(timeout=60)
    assert hostile.returncode == 0, complaints
    return server(folder)


def ask(page: Page, site: str, run: str, question: str) -> Any:
    """Give what the server answers, to compare the page with."""
    answer = page.request.get(f"{site}api/v1/run/{run}/answer/{question}")
    assert answer.ok, answer.text()
    return json.loads(answer.text())


def address(page: Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))


def test_the_list_reaches_the_last_session_and_draws_few(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions?sort=-ran")
    answer = ask(page, site, "many", "sessions?sort=-ran&limit=1000")
    lines = answer["sessions"]
    rows = page.get_by_role("table", name="Sessions").locator("tbody tr[tabindex]")
    expect(rows.first.locator("a").first).to_have_attribute(
        "href", f"#/many/session/{lines[0]['row']['span_id']}"
    )
    assert answer["matched"] > 400
    assert rows.count() < 60
    page.get_by_role("region", name="List of sessions").evaluate("box => box.scrollTo(0, 1e6)")
    expect(rows.last).to_have_attribute("aria-rowindex", str(answer["matched"] + 1))
    expect(rows.last.locator("a").first).to_have_attribute(
        "href", f"#/many/session/{lines[-1]['row']['span_id']}"
    )
    assert rows.count() < 60


def test_a_facet_narrows_and_a_row_unfolds_into_its_path(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions")
    page.locator("[data-panel=facets]").get_by_role("button", name=re.compile("^failed")).click()
    failed = ask(page, site, "many", "sessions?filter=outcome:failed")
    expect(page.locator("[data-panel=list] .panel-hint")).to_have_text(
        f"{failed['matched']} sessions"
    )
    assert "f=outcome:failed" in address(page)
    first = failed["sessions"][0]["row"]["span_id"]
    page.get_by_role("button", name=re.compile("^Path of")).first.click()
    spans = ask(page, site, "many", f"session?session={first}")["spans"]
    chips = page.get_by_role("list", name="Phases in order").locator("li")
    expect(chips).to_have_count(sum(one["depth"] == 0 for one in spans))


def test_nothing_says_which_condition_to_drop(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions?f={quote('reward>1000 phase:toolcall')}")
    with_tools = ask(page, site, "many", "sessions?filter=phase:toolcall")["matched"]
    nothing = page.get_by_role("region", name="Nothing for this filter")
    expect(nothing).to_contain_text(f"without it {with_tools} sessions")
    nothing.get_by_role("button", name="Drop reward>1000").click()
    expect(page.locator("[data-panel=list] .panel-hint")).to_have_text(f"{with_tools} sessions")


def test_the_filter_is_completed_from_the_run(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions")
    expect(page.get_by_role("button", name=re.compile("^accepted"))).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Filter")).to_be_focused()
    page.keyboard.type("step:1 -outc")
    words = page.locator("#filter-words option")
    expect(words.first).to_have_attribute("value", "step:1 -outcome:accepted")
    assert "step:1 -outcome:" in words.evaluate_all("all => all.map(one => one.value)")


def test_a_box_on_the_scatter_becomes_a_filter(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions")
    picture = page.get_by_role("img", name=re.compile("Sessions as points by their end"))
    edges = picture.bounding_box()
    assert edges is not None
    page.mouse.move(edges["x"] + edges["width"] * 0.3, edges["y"] + 10)
    page.mouse.down()
    page.mouse.move(edges["x"] + edges["width"] * 0.6, edges["y"] + 120, steps=4)
    page.mouse.up()
    page.wait_for_function("location.hash.includes('t=')")
    match = re.search(r"f=(ran>=\S+ ran<[\d.]+s)&t=([\d.]+)-([\d.]+)", address(page))
    assert match is not None, address(page)
    first = ask(page, site, "many", "overview")["first_ns"]
    low, high = (round(first + float(one) * 1e9) for one in match.groups()[1:])
    wanted = f"filter={quote(match[1])}&ended_from_ns={low}&ended_to_ns={high}"
    matched = ask(page, site, "many", f"sessions?{wanted}")["matched"]
    assert 0 < matched < ask(page, site, "many", "sessions?")["matched"]
    expect(page.locator("[data-panel=list] .panel-hint")).to_have_text(f"{matched} sessions")


def test_marked_sessions_are_compared_with_the_rest(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions")
    boxes = page.get_by_role("checkbox", name=re.compile("^Mark "))
    expect(boxes.nth(8)).to_be_visible()
    for place in range(9):
        boxes.nth(place).check()
        expect(boxes.nth(place)).to_be_checked()
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    everyone = ask(page, site, "many", "sessions?")["matched"]
    expect(page.locator("[data-panel=what-is-different-about-these]")).to_contain_text(
        f"9 sessions against {everyone - 9}"
    )
    table = page.get_by_role("table", name="Phases of both sides")
    expect(table.locator("tbody tr").first).to_contain_text("session")


def test_tasks_are_sorted_by_the_server(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions?tab=tasks")
    rows = page.get_by_role("table", name="Tasks").locator("tbody tr")
    page.get_by_role("button", name="Retries").click()
    first = ask(page, site, "many", "tasks?sort=-retries")["tasks"][0]
    assert first["retries"] > 0
    expect(rows.first).to_contain_text(first["task_key"])


def test_a_session_shows_spans_attempts_and_siblings(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/sessions")
    line = ask(page, site, "many", f"sessions?filter={quote('attempt:1')}&limit=1")["sessions"][0]
    session = line["row"]["span_id"]
    answer = ask(page, site, "many", f"session?session={session}")
    page.goto(f"{site}#/many/session/{session}")
    spans = page.locator("[data-panel=waterfall] li[data-span]")
    expect(spans).to_have_count(len(answer["spans"]))
    expect(page.locator(".attempts")).to_contain_text("2 attempts")
    expect(page.get_by_text("capture is opt-in")).to_be_visible()
    spans.first.get_by_role("button").click()
    page.get_by_role("button", name="Attributes").click()
    expect(page.get_by_role("heading", name="Span", exact=True)).to_be_visible()
    page.keyboard.press("[")
    expect(page.get_by_role("navigation", name="Siblings")).to_be_visible()
    page.wait_for_function(f"!location.hash.includes({session!r})")


def test_an_open_session_says_at_which_line_it_waits(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/sessions")
    answer = ask(page, site, "run", "sessions?filter=status:open&limit=1")
    session = answer["sessions"][0]["row"]["span_id"]
    page.goto(f"{site}#/run/session/{session}?tab=await")
    expect(page.get_by_text("waits here").first).to_be_visible()
    expect(page.get_by_role("link", name="2 other open sessions on the same line")).to_be_visible()
    expect(page.locator(".session-head")).to_contain_text("reward pending")


def test_runs_are_compared_with_their_settings(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/many/compare?by=runs")
    picker = page.get_by_label("A: this run, B:")
    expect(picker).not_to_have_value("")  # the run before
    picker.select_option("other")
    phases = ask(page, site, "many", "compare?other=other")["phases"]
    rows = page.get_by_role("table", name="Phases of both sides").locator("tbody tr")
    expect(rows).to_have_count(len(phases))
    expect(rows.first).to_contain_text(phases[0]["text"])
    expect(page.get_by_role("table", name="Settings")).to_contain_text("seed 3")
    rows.last.get_by_role("button").click()
    expect(page.get_by_role("heading", name=re.compile("Deciles of"))).to_contain_text(
        phases[-1]["name"]
    )


def test_hostile_text_is_text_on_every_part(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/hostile/sessions")
    expect(page.get_by_role("table", name="Sessions").locator("tbody tr[tabindex]")).to_have_count(
        3
    )
    pending = ask(page, site, "hostile", f"sessions?filter={quote('reward:none')}")["sessions"][0]
    session = pending["row"]["span_id"]
    for tab in ("", "tools", "reward", "attributes", "events", "await"):
        page.goto(f"{site}#/hostile/session/{session}?tab={tab}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("</script><img")
        if tab in ("", "attributes", "events"):
            expect(page.locator("[data-panel=tabs]")).to_contain_text(SAFE)
    expect(page.get_by_text("reward pending").first).to_be_visible()
    page.goto(f"{site}#/hostile/session/{session}")
    page.get_by_role("button", name="Open all of it").first.click()
    long = page.locator(".messages pre", has_text="yyyy").first
    expect(page.get_by_role("button", name="Download")).to_be_visible()
    assert 4_096 < len(long.inner_text()) <= 150_000
    message = page.locator(".message").first
    message.hover()
    expect(page.locator("[data-panel=waterfall] li.lit")).to_have_count(1)
    page.goto(f"{site}#/hostile/compare?fa={quote('outcome:failed')}")
    expect(page.get_by_role("table", name="Phases of both sides")).to_contain_text("<b>bold</b>")
    assert page.locator("main img, main b:text-is('bold'), main script").count() == 0


@pytest.mark.parametrize(
    "place",
    ["many/sessions", "hostile/sessions", "hostile/session/ID", "many/compare?sa=0-3&sb=4-7"],
)
def test_pages_fit_a_phone(site: str, open_page: OpenPage, place: str) -> None:
    page = open_page(site, viewport=PHONE)
    session = ask(page, site, "hostile", "sessions?limit=1")["sessions"][0]["row"]["span_id"]
    page.goto(f"{site}#/{place.replace('ID', session)}")
    expect(page.locator(".page .panel-body, .session-parts").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
