"""The report, opened from disk."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rollscope.model.rundir import RUN_FILE
from rollscope.testing import RunShape, generate_run
from tests.browser.conftest import PHONE
from tests.browser.hostile import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage
    from tests.integration.support import Lab

_NAME = "<img src=x onerror=alert(1)><!--'\"&"
_SHOWN = "</script><img src=x onerror=alert(1)>"

_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until the page has drawn what it knows."""


def _report(lab: Lab, run: Path, *options: str) -> str:
    output = lab.folder / f"{len(list(lab.folder.iterdir()))}.html"
    command = [sys.executable, "-m", "rollscope", "report", str(run), "-o", str(output), *options]
    process = lab.launch(command)
    out, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert str(output) in out
    return output.as_uri()


@pytest.fixture(scope="module")
def report(module_lab: Lab) -> str:
    """Give the address of a report of the last step of a run that is over."""
    run = module_lab.run.with_name("over")
    generate_run(run, RunShape(steps=2, tasks_per_step=5, group_size=2, failure_share=0.4))
    return _report(module_lab, run, "--scope", "latest")


@pytest.fixture(scope="module")
def hostile_report(module_lab: Lab) -> str:
    """Give the address of a report of a run with hostile text in every field, its name too."""
    program = [sys.executable, "-m", "tests.browser.hostile"]
    recording = module_lab.launch(program, {"ROLLSCOPE_RUN": "plain"})
    _, complaints = recording.communicate(timeout=60)
    assert recording.returncode == 0, complaints
    run = module_lab.run.with_name("plain").rename(module_lab.run.with_name(_NAME))
    file = run / RUN_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"name": _SHOWN + _NAME}))
    return _report(module_lab, run, "--payloads")


def test_a_report_opens_at_the_home_of_its_run(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    expect(page.get_by_role("heading", name="Steps", exact=True)).to_be_visible()
    expect(page.locator('[title*="Only steps 1 are"]')).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    canvas = page.locator("canvas").first
    expect(canvas).to_be_visible()
    expect(page.get_by_text("in flight").first).to_be_visible()


def test_a_step_and_a_session_are_told_of_without_a_server(
    report: str, open_page: OpenPage
) -> None:
    page = open_page(report)
    page.locator('a[href*="/step/"]').first.click()
    expect(page.get_by_role("heading", name="Critical path")).to_be_visible()
    failed = page.get_by_role("button", name="Failed", exact=True)
    for _ in range(200):  # what is below the fold comes when one scrolls near
        if failed.count():
            break
        page.mouse.wheel(0, 300)
        page.evaluate(_DRAWN)
    failed.click()
    expect(page.get_by_text("What is different about these")).to_be_visible()
    expect(page.get_by_text("not in this report")).to_have_count(0)


def test_sessions_are_filtered_and_sorted_in_the_page(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    expect(page.locator("h1")).to_be_visible()
    page.evaluate("location.hash = location.hash.split('/', 2).join('/') + '/sessions?sort=-ran'")
    rows = page.locator('main a[href*="/session/"]')
    expect(rows.first).to_be_visible()
    page.get_by_label("Filter", exact=True).fill("outcome:failed,timeout")
    page.keyboard.press("Enter")
    expect(page.get_by_text("accepted")).to_have_count(0)
    page.get_by_label("Filter", exact=True).fill("outcome:accepted")
    page.keyboard.press("Enter")
    expect(page.get_by_text("accepted").first).to_be_visible()
    expect(page.get_by_text("failed")).to_have_count(0)


def test_what_is_not_in_the_report_is_said_in_a_sentence(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    expect(page.locator("h1")).to_be_visible()
    page.evaluate("location.hash = location.hash.split('/', 2).join('/') + '/step/0'")
    expect(page.get_by_text("rollscope view").first).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages")).not_to_contain_text("Compare")


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
def test_hostile_text_is_text_in_a_report(
    hostile_report: str, open_page: OpenPage, viewport: dict[str, int] | None
) -> None:
    page = open_page(hostile_report, **({"viewport": viewport} if viewport else {}))
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    expect(page.locator("h1")).to_be_visible()
    home = page.evaluate("location.hash")
    session = page.evaluate(
        "document.documentElement.outerHTML.match(/session\\/([0-9a-f]{16})/)?.[1] ?? ''"
    )
    pages = ("steps", "step/1", "sessions", "timeline", "now", "health", f"session/{session}")
    for place in pages:
        page.evaluate("hash => { location.hash = hash }", f"{home}/{place}")
        expect(page).to_have_title(re.compile(place.split("/")[0]))
        expect(page.locator("main h1").first).to_be_attached()
        page.evaluate(_DRAWN)
    assert page.locator("img, b:has-text('bold')").count() == 0
    runnable = "script:not([type='application/octet-stream'])"
    assert page.locator(runnable).count() == 1
    page.evaluate("hash => { location.hash = hash }", home + "/sessions")
    expect(page.get_by_text(_SHOWN).first).to_be_visible()
    assert _SHOWN in HOSTILE
