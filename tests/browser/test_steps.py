"""The pages Steps and Step, on a real server: which step was slow, and why."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.conftest import PHONE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

expect.set_options(timeout=20_000)  # machines that test are busy

SHAPE = RunShape(
    steps=16,
    queue_share=0.5,
    retry_share=0.3,
    replicas=2,
    gates=True,
    declares_slots=True,
    dying_process=False,
)


@pytest.fixture(scope="module")
def site(server: Serve, module_lab: Lab, hanging_run: Path) -> str:
    """Serve a run of sixteen steps, one whose step is running, and one without steps."""
    folder = hanging_run.parent
    generate_run(folder / "steps", SHAPE)
    generate_run(folder / "stepless", RunShape(steps=1, records_steps=False))
    return server(folder)


def ask(page: Page, site: str, run: str, question: str) -> Any:
    """Give what the server answers, to compare the page with."""
    answer = page.request.get(f"{site}api/v1/run/{run}/answer/{question}")
    assert answer.ok, answer.text()
    return json.loads(answer.text())


def panel(page: Page, name: str) -> Locator:
    """Give a panel of the page, scrolled to, for those below the fold come late."""
    found = page.locator(f"[data-panel={name}]")
    for _ in range(200):
        if found.count():
            break
        page.mouse.wheel(0, 300)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    found.scroll_into_view_if_needed()
    return found


def shown_shares(group: Locator) -> float:
    """Add up the widths of a bar's parts, in percent."""
    widths: list[float] = group.locator("i[style*=width]").evaluate_all(
        "parts => parts.map(part => parseFloat(part.style.width))"
    )
    return sum(widths)


def test_steps_are_listed_with_their_verdicts_and_open(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/steps/steps")
    answer = ask(page, site, "steps", "steps?last=20")

    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    expect(rows).to_have_count(16)
    latest = answer["steps"][-1]
    cause = next(one for one in latest["verdict"]["findings"] if one["stake_ns"] > 0)
    expect(rows.first).to_contain_text(cause["rule"])
    rows.first.locator("td[data-title=Wall]").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Step 15")


def test_bars_make_up_their_step_and_obey_the_keys(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/steps/steps")
    bars = page.get_by_role("group", name="Steps; arrow keys move")
    expect(bars.get_by_role("link")).to_have_count(16)

    for measure in ("Critical path", "Slot time"):
        page.get_by_role("button", name=measure).click()
        expect(page.get_by_role("button", name=measure)).to_have_attribute("aria-pressed", "true")
        heights = bars.locator(".bar-stack").evaluate_all(
            "bars => bars.map(bar => [...bar.children]"
            ".reduce((sum, part) => sum + parseFloat(part.style.height), 0))"
        )
        assert heights == pytest.approx([100.0] * 16, abs=0.01)

    bars.get_by_role("link").last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Step 13")


def test_a_step_says_why_and_its_parts_make_up_the_whole(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/steps/step/9")
    answer = ask(page, site, "steps", "step?step=9")

    verdict = panel(page, "verdict")
    expect(verdict).to_contain_text(answer["verdict"]["opening"])
    for finding, line in zip(
        answer["verdict"]["findings"], verdict.locator("li").all(), strict=True
    ):
        said = [finding["sentence"], finding["try_next"]]
        for text in said:
            expect(line).to_contain_text(text.replace("`", ""))
        expect(line.locator("code")).to_have_text(re.findall("`(.+?)`", " ".join(said)))
    for name in ("Wall time by the critical path", "Trainer time", "Slot time"):
        assert shown_shares(page.get_by_role("group", name=name)) == pytest.approx(100.0, abs=0.01)
    path = answer["parts"]["path"]
    expect(panel(page, "critical-path")).to_contain_text(
        f"{path['inferred_hops']} of them inferred"
    )

    held = panel(page, "tail").get_by_role("table", name="Sessions that held the tail")
    holder = answer["holders"][0]
    link = held.locator("tbody tr").first.get_by_role("link")
    expect(link).to_have_attribute("href", f"#/steps/session/{holder['span_id']}")


def test_brackets_go_from_step_to_step_and_stop_at_the_ends(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/steps/step/14")
    heading = page.get_by_role("heading", level=1)
    expect(page.get_by_role("link", name="Next")).to_be_visible()

    page.keyboard.press("]")
    expect(heading).to_have_text("Step 15")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    expect(page.get_by_role("link", name="Previous")).to_be_visible()
    page.keyboard.press("[")
    expect(heading).to_have_text("Step 14")


def test_a_box_asks_what_is_different_and_stays_in_the_address(
    site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/steps/step/9")
    for name in ("tail", "durations", "hotspots"):  # what comes in later would move the canvas
        expect(panel(page, name).locator("table, canvas").first).to_be_visible()
    canvas = panel(page, "durations").locator("canvas")
    expect(canvas).to_be_visible()
    box = canvas.bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + 60, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + 120, steps=4)
    page.mouse.up()

    found = panel(page, "what-is-different-about-these")
    hint = found.locator(".panel-hint")
    expect(hint).to_have_text(re.compile(r"\d+ sessions? against \d+"))
    chosen, rest = (int(number) for number in re.findall(r"\d+", hint.inner_text()))
    assert chosen + rest == ask(page, site, "steps", "step?step=9")["summary"]["sessions"]
    assert 0 < chosen < chosen + rest
    again = open_page(page.url)
    expect(panel(again, "what-is-different-about-these")).to_contain_text(hint.inner_text())
    page.get_by_role("button", name="Clear").click()
    expect(found).to_have_count(0)


def test_all_that_a_step_is_asked_is_there_once_one_scrolls(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/steps/step/9", viewport=PHONE)
    expect(panel(page, "verdict")).to_be_visible()
    assert not page.locator("[data-panel=groups]").count()

    expect(panel(page, "hotspots").locator("tbody tr").first).to_contain_text("session / ")
    expect(panel(page, "services").get_by_role("link", name="reward")).to_be_visible()
    for name in ("replicas", "weight-sync", "staleness", "waste", "selection", "groups"):
        expect(panel(page, name)).to_have_attribute("aria-busy", "false")
    expect(panel(page, "ten-slowest").locator("tbody tr")).to_have_count(10)
    assert not page.get_by_role("alert").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_running_step_says_so(site: str, open_page: OpenPage, hanging_run: Path) -> None:
    page = open_page(f"{site}#/{hanging_run.name}/step/5")

    expect(panel(page, "verdict")).to_contain_text("This is what is known so far")
    expect(panel(page, "verdict")).to_contain_text("stuck")


def test_what_is_not_there_is_said(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/stepless/steps")
    expect(page.locator("[data-panel=bars]")).to_contain_text("The run records no steps")
    page = open_page(f"{site}#/stepless/step/3")
    expect(page.get_by_role("main")).to_contain_text("The run records no steps")
