"""A rollout over Ray, a subprocess and an engine's OTLP is one tree, also on the page."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.integration.support import eventually

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

RUN = "tree"
NAMES = ["rollout", "toolcall", "tool.ask", "generate"]
"""Of driver, actor, tool and engine, each inside of the one before."""


@pytest.fixture(scope="module")
def site(module_lab: Lab, server: Serve) -> str:
    """Serve what the rollout recorded, and received from the engine while it ran."""
    runs = module_lab.run.parent
    runs.mkdir()
    site = server(runs)
    command = [sys.executable, "-m", "tests.integration.one_tree", "driver", site.rstrip("/")]
    env = {
        "ROLLSCOPE_RUN": RUN,
        "ROLLSCOPE_SINK": "ray",
        "ROLLSCOPE_SPOOL_DIR": str(module_lab.folder / "spools"),
    }
    driver = module_lab.launch(command, env=env)
    out, err = driver.communicate(timeout=180)
    assert (driver.returncode, out) == (0, "an answer\n"), err
    return site


def ask(site: str, question: str) -> Any:
    with urllib.request.urlopen(f"{site}api/v1/run/{RUN}/answer/{question}") as answer:  # noqa: S310
        return json.loads(answer.read())


def session_of(site: str) -> dict[str, Any]:
    """Give the one session, once all parts of it are there."""
    (line,) = ask(site, "sessions")["sessions"]

    def whole() -> Any:
        answer = ask(site, f"session?session={line['row']['span_id']}")
        return answer if len(answer["spans"]) >= len(NAMES) else None

    found: dict[str, Any] = eventually(whole, "every part of the session is there")
    return found


def test_the_answer_has_each_part_inside_of_the_one_that_caused_it(site: str) -> None:
    answer = session_of(site)
    details = {detail["span"]["name"]: detail for detail in answer["spans"]}
    assert [detail["span"]["name"] for detail in answer["spans"]] == NAMES
    spans = [details[name]["span"] for name in NAMES]
    session = answer["session"]["span_id"]
    assert [span["parent_id"] for span in spans] == [session, *(s["span_id"] for s in spans[:-1])]
    assert [details[name]["depth"] for name in NAMES] == [0, 1, 2, 3]
    assert len({span["process"] for span in spans}) == len(NAMES)
    assert all(span["status"] == "ok" for span in spans)
    assert (answer["session"]["step"], answer["session"]["task_key"]) == (3, "gsm8k/12")
    assert [run["name"] for run in runs_of(site)] == [RUN]


def runs_of(site: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{site}api/v1/runs") as answer:  # noqa: S310
        runs: list[dict[str, Any]] = json.loads(answer.read())["runs"]
    return runs


def test_the_page_of_the_session_shows_all_of_them(site: str, open_page: OpenPage) -> None:
    session = session_of(site)["session"]["span_id"]
    page = open_page(f"{site}#/{RUN}/session/{session}")
    spans = page.locator("[data-panel=waterfall] li[data-span]")
    expect(spans).to_have_count(len(NAMES))
    for place, name in enumerate(NAMES):
        expect(spans.nth(place)).to_contain_text(name)
