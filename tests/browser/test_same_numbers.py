"""The page's numbers are the commands' numbers: one registry, asked by every face of a run."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from rollscope.answers.encoding import encode_answer
from rollscope.answers.questions import QUESTIONS
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.sweep import settle, unfold
from tests.integration.test_same_numbers import SAME, of_the_moment

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

_UNITS_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86_400e9}


@pytest.fixture(scope="module")
def run(module_lab: Lab) -> Path:
    """Give a run that is over, so that nothing depends on when it is asked."""
    path = module_lab.run.with_name("same")
    generate_run(path, RunShape(steps=3, tasks_per_step=8, stuck_sessions=0, dying_process=False))
    return path


@pytest.fixture(scope="module")
def site(server: Serve, run: Path) -> str:
    """Serve it."""
    return server(run)


def ask(page: Page, site: str, question: str, given: dict[str, str] | None = None) -> Any:
    """Give what the server answers."""
    answer = page.request.get(f"{site}api/v1/run/same/answer/{question}", params={**(given or {})})
    assert answer.ok, answer.text()
    return json.loads(answer.text())


def says(text: str, ns: int) -> bool:
    """Say whether a duration as the page writes it is this one, to the last digit shown."""
    parts = re.findall(r"(\d+)(\.\d+)? (ns|µs|ms|s|m|h|d)\b", text)
    assert parts, text
    shown = sum(float(whole + rest) * _UNITS_NS[unit] for whole, rest, unit in parts)
    _, rest, unit = parts[-1]
    last_digit = _UNITS_NS[unit] / 10 ** max(len(rest) - 1, 0)
    return bool(abs(shown - ns) <= last_digit * 0.501)


def test_the_server_answers_every_question_as_the_registry_does(
    run: Path, site: str, open_page: OpenPage
) -> None:
    page = open_page(site)
    with RunStore(run, threads=1) as store:
        for name, question in QUESTIONS.items():
            given = SAME[name][0] if name in SAME else {}
            if any(one.is_needed and one.name not in given for one in question.parameters):
                continue
            answer = json.loads(encode_answer(question.ask(store, given)))
            shown = ask(page, site, name, given)
            assert of_the_moment(shown) == of_the_moment(answer), name


@pytest.mark.parametrize("name", ["hotspots", "steps"])
def test_the_server_answers_as_the_command_prints(
    name: str, run: Path, site: str, module_lab: Lab, open_page: OpenPage
) -> None:
    given, (verb, *options) = SAME[name]
    page = open_page(site)
    printed = subprocess.run(
        module_lab.command(verb, run, *options, "--json"), capture_output=True, check=True
    ).stdout
    assert of_the_moment(ask(page, site, name, given)) == of_the_moment(json.loads(printed))


def test_steps_and_hotspots_on_the_page_are_those_of_the_answers(
    site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/same/steps")
    steps = ask(page, site, "steps", {"last": "50"})["steps"]
    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    expect(rows).to_have_count(len(steps))
    for row, step in zip(rows.all(), reversed(steps), strict=True):
        wall = row.locator("td[data-title=Wall]").inner_text()
        assert says(wall, step["summary"]["wall_ns"])

    page.goto(f"{site}#/same/step/1")
    unfold(page)
    hotspots = ask(page, site, "hotspots", {"scope": "1"})["hotspots"]["rows"]
    rows = page.get_by_role("table", name="Hotspots by").locator("tbody tr")
    for row, spot in zip(rows.all(), hotspots, strict=False):
        assert row.locator("td[data-title=n]").inner_text() == f"{spot['count']:,}"
        own = row.locator("td[data-title=Self]").inner_text()
        assert says(own, spot["self_ns"])
    assert rows.count() > 3


def test_tiles_and_lists_on_the_page_are_those_of_the_answers(
    site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/same/now")
    settle(page)
    now = ask(page, site, "now")
    expect(page.locator(".tile", has_text="In flight")).to_contain_text(
        str(now["in_flight"]["count"])
    )
    assert ask(page, site, "stuck")["rows"] == []
    expect(page.get_by_role("table", name="Stuck and slow")).to_have_count(0)

    page.goto(f"{site}#/same/sessions?sort=-ran")
    settle(page)
    listed = ask(page, site, "sessions", {"sort": "-ran", "limit": "5"})["sessions"]
    ran = page.get_by_role("table", name="Sessions").locator("td[data-title=Ran]")
    for cell, session in zip(ran.all()[: len(listed)], listed, strict=True):
        assert says(cell.inner_text(), session["ran_ns"])
