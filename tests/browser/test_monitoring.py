"""Recorded metrics on the page, wires that can be tried, and the ways to Grafana and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from rollscope.store.embedded import RunStore
from tests.browser.conftest import PHONE
from tests.browser.sweep import accessibility_faults, overflow, settle, unfold
from tests.integration.exposing import exposing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

RUN = "measured"
PROGRAM = """
    import rollscope as rs
    rs.init(run="measured")
    for step in range(3):
        with rs.step(step), rs.task(f"gsm8k/{step}"), rs.session(sample=0) as session:
            rs.count("tool_calls", 4, tool="python")
            rs.count("tool_calls", 2, tool="bash")
            rs.gauge("kl", 0.5 + step)
            for seconds in (1.0, 2.0, 3.0, 40.0):
                rs.observe("judge_seconds", seconds, judge="a")
            session.finish("accepted", reward=1.0)
"""


@pytest.fixture(scope="module")
def measured_run(module_lab: Lab) -> Path:
    """Give a run with metrics of every kind."""
    program = module_lab.start(PROGRAM)
    assert program.wait(30) == 0, program.communicate()[1]
    return module_lab.run.with_name(RUN)


@pytest.fixture(scope="module")
def site(server: Serve, measured_run: Path) -> Iterator[str]:
    """Serve it beside a Grafana that is well, and a Tempo that is not."""
    with exposing() as grafana, exposing() as tempo:
        tempo.answer = lambda handler: handler.send_error(503)
        base = grafana.url.rpartition("/")[0]
        yield server(
            measured_run.parent,
            "--no-token",
            f"--grafana-url={base}",
            f"--tempo-url={tempo.url.rpartition('/')[0]}",
        )


@pytest.fixture(scope="module")
def plain_site(server: Serve, crashed_run: Path) -> str:
    """Say where a run without metrics is, on a server that was told of no other program."""
    return f"{server(crashed_run)}#/{crashed_run.name}"


def metrics_panel(page: Page) -> Locator:
    """Go down to the panel of metrics."""
    unfold(page)
    panel = page.locator("[data-panel=metrics]")
    panel.scroll_into_view_if_needed()
    return panel


def rows(panel: Locator) -> list[list[str]]:
    """Give the numbers of the chart, from its table."""
    panel.get_by_role("button", name="as a table").click()
    lines = panel.get_by_role("table").locator("tbody tr").all()
    return [line.locator("th, td").all_inner_texts() for line in lines]


def test_a_metric_is_drawn_by_step_and_by_time_and_the_link_keeps_it(
    site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/{RUN}/steps?metric=m:tool_calls")
    panel = metrics_panel(page)
    expect(panel).to_contain_text("A counter: how much.")
    expect(panel.locator(".legend li")).to_have_text([" tool=bash", " tool=python"])
    assert rows(panel) == [["0", "2", "4"], ["1", "2", "4"], ["2", "2", "4"]]

    panel.get_by_role("button", name="Time", exact=True).click()

    expect(panel).to_contain_text("A counter: how much a second.")
    expect(page).to_have_url(re.compile(r"axis=time"))
    panel = metrics_panel(open_page(page.url))
    expect(panel.get_by_role("button", name="Time", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_a_histogram_has_its_median_and_a_range_around_it(site: str, open_page: OpenPage) -> None:
    panel = metrics_panel(open_page(f"{site}#/{RUN}/steps?metric=m:judge_seconds"))

    expect(panel).to_contain_text("the median, shaded up to the 95th percentile")
    (first, *_) = rows(panel)
    median, _, high = re.fullmatch(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)", first[1]).groups()  # type: ignore[union-attr]  # the test fails
    assert float(median) == pytest.approx(2.0, rel=0.06)
    assert float(high) == pytest.approx(40.0, rel=0.06)


def test_a_chosen_metric_stays_on_now(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/{RUN}/now")
    page.get_by_label("Which metric").select_option("kl")
    panel = page.locator("[data-panel=metric]")
    expect(panel.get_by_role("img", name="kl by time")).to_be_visible()

    page.reload()

    expect(panel.get_by_role("img", name="kl by time")).to_be_visible()


def test_a_run_without_metrics_says_what_to_write(plain_site: str, open_page: OpenPage) -> None:
    panel = metrics_panel(open_page(f"{plain_site}/steps"))
    expect(panel).to_contain_text('rollscope.gauge("kl", 0.02)')


def test_wires_are_tried_and_the_page_says_how_it_went(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/{RUN}/health")
    told = {
        "Prometheus: a job": "every line can be read",
        "OpenTelemetry:": "Nothing was kept",
        "Grafana, as given": "/api/health answers, in",
        "Tempo, as given": "/ready answers with the status 503",
    }
    for title, sentence in told.items():
        page.get_by_role("button", name=f"Test: {title}").click()
        line = page.locator(".wiring li", has_text=title)
        expect(line.get_by_role("status")).to_contain_text(sentence)
        expect(line.locator(".badge")).to_contain_text(
            "fails" if title.startswith("Tempo") else "works"
        )


def test_dashboards_and_traces_open_apart_and_only_where_grafana_is(
    site: str, measured_run: Path, open_page: OpenPage
) -> None:
    with RunStore(measured_run) as store:
        sql = "SELECT trace_id FROM spans WHERE kind = 'session' AND task_key = 'gsm8k/1'"
        trace = store.query(sql)["trace_id"][0].as_py().hex()
    page = open_page(f"{site}#/{RUN}/now")
    overview = page.get_by_role("link", name="Overview")
    expect(overview).to_have_attribute(
        "href", re.compile(r"^http://127\.0\.0\.1:\d+/d/rollscope-overview\?var-run=measured$")
    )

    page.goto(f"{site}#/{RUN}/session/{trace}")

    expect(page.get_by_role("heading", level=1)).to_have_text("gsm8k/1#0")
    opening = page.get_by_role("link", name="Open in Grafana")
    expect(opening).to_have_attribute("rel", "noopener noreferrer")
    expect(opening).to_have_attribute("target", "_blank")
    assert trace in unquote(opening.get_attribute("href") or "")


def test_a_session_opens_by_the_name_that_exemplars_have(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/{RUN}/session/gsm8k/2#0")
    expect(page.get_by_role("heading", level=1)).to_have_text("gsm8k/2#0")

    page = open_page(f"{site}#/{RUN}/session/gsm8k/9#0", forgiven="status of 404")
    task = page.get_by_role("link", name="All sessions of this task")
    expect(task).to_have_attribute("href", f"#/{RUN}/sessions?f=task:gsm8k/9")


@pytest.mark.parametrize("name", ["health", "now", "steps?metric=m:judge_seconds&axis=time"])
def test_what_is_new_is_for_everybody(site: str, open_page: OpenPage, name: str) -> None:
    for options in ({}, {"viewport": PHONE, "color_scheme": "dark"}):
        page = open_page(f"{site}#/{RUN}/{name}", **options)
        if name == "now":
            page.get_by_label("Which metric").select_option("judge_seconds")
        unfold(page)
        settle(page)
        assert accessibility_faults(page) == []
        assert overflow(page) == 0
