"""Dashboards: up to date, of the form that Grafana reads, laid out, and about series there are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from rollscope.analysis.roles import role_of
from rollscope.collect.engineseries import engine_name
from rollscope.model.kinds import Kind, Outcome
from rollscope.otlp.export.attributes import place_name
from rollscope.otlp.export.resources import Resources
from rollscope.otlp.export.settings import read_settings
from tests.monitoring.shipped import Form, asked, dashboards, metric_names, panels, placed, recorded
from tests.monitoring.test_rule_files import series_of_ours

ROOT = Path(__file__).parents[2]
UIDS = {"rollscope-prometheus", "rollscope-tempo"}
ABOUT_SCRAPES = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS"}
BUILT_IN = {"__rate_interval", "__field", "__data", "__value", "__url_time_range"}
every_dashboard = pytest.mark.parametrize("name", sorted(dashboards()))


def test_the_files_are_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "write-dashboards", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_dashboard_is_found_under_the_uid_that_links_use() -> None:
    uids = {name: dashboard["uid"] for name, dashboard in dashboards().items()}

    assert uids == {
        name: f"rollscope-{name}"
        for name in ("overview", "rollout", "staleness", "engines", "tracer")
    }


@every_dashboard
def test_reading_a_file_with_the_types_and_writing_it_gives_the_same(name: str) -> None:
    register_default_plugins()
    written = dashboards()[name]

    again = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))

    assert again == written
    assert written["schemaVersion"] >= 36
    assert written["title"].startswith("Rollscope: ")


@every_dashboard
def test_panels_do_not_overlap_and_stay_within_the_grid(name: str) -> None:
    everything = list(placed(dashboards()[name]))
    places = [(panel["title"], panel["gridPos"]) for panel in everything]

    assert len({panel["id"] for panel in everything}) == len(everything)
    for title, place in places:
        assert 0 <= place["x"] <= 24 - place["w"], title
    for (one, first), (other, second) in combinations(places, 2):
        is_beside = (
            first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        )
        is_above = first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]
        assert is_beside or is_above, (one, other)


@every_dashboard
def test_every_panel_says_what_it_is_in_which_unit_and_whom_it_asks(name: str) -> None:
    for panel in panels(dashboards()[name]):
        title = panel["title"]
        assert title
        assert panel["description"].endswith("."), title
        assert panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"]["uid"] in UIDS, title
        assert panel["targets"], title
        assert {one["datasource"]["uid"] for one in panel["targets"]} <= UIDS, title
        refs = [one["refId"] for one in panel["targets"]]
        assert len(set(refs)) == len(refs), title


@every_dashboard
def test_every_variable_that_is_used_is_declared(name: str) -> None:
    dashboard = dashboards()[name]
    declared = {one["name"] for one in dashboard["templating"]["list"]}

    used = set(re.findall(r"\$\{?(\w+)", json.dumps(_asking_and_linking(dashboard))))

    assert {"run", "server"} <= declared
    assert used - BUILT_IN - {"__all"} <= declared
    assert declared - {"server"} <= used


def _asking_and_linking(dashboard: Form) -> list[object]:
    return [dashboard["panels"], dashboard["links"], dashboard["annotations"]]


def test_the_choice_of_runs_takes_several() -> None:
    for name, dashboard in dashboards().items():
        run = dashboard["templating"]["list"][0]
        assert run["query"]["query"] == "label_values(rollscope_run_info, run)", name
        assert (run["multi"], run["includeAll"]) == (True, True), name


def test_queries_are_about_series_that_there_are() -> None:
    known = series_of_ours() | set(recorded()) | ABOUT_SCRAPES

    for one in asked():
        for series in metric_names(one.query):
            assert series in known or engine_name(series) is not None, one


def test_lengths_come_with_the_sessions_that_stand_for_them() -> None:
    with_exemplars = {one.query for one in asked() if one.has_exemplars}

    for family in ("rollscope_session_duration_seconds", "rollscope_phase_duration_seconds"):
        assert any(f"{family}_bucket" in query for query in with_exemplars), family


def test_each_line_of_a_run_leads_to_the_page() -> None:
    for dashboard in dashboards().values():
        for panel in panels(dashboard):
            if panel["type"] in ("timeseries", "stat", "table") and panel["targets"][0].get("expr"):
                (link,) = panel["fieldConfig"]["defaults"]["links"]
                assert re.match(r"http://\$\{server:raw\}/#/\$\{__", link["url"]), panel["title"]


def test_outcomes_and_phases_have_one_colour_everywhere() -> None:
    seen: dict[str, set[str]] = {}
    for dashboard in dashboards().values():
        for panel in panels(dashboard):
            for override in panel["fieldConfig"]["overrides"]:
                value = override["properties"][0]["value"]
                if override["matcher"]["id"] == "byRegexp":
                    pattern = re.compile(override["matcher"]["options"].strip("/"))
                    for word in (*Outcome, "generate", "chat", "toolcall", "env.step", "reward"):
                        if pattern.match(f"{word} · some-run"):
                            key = role_of(word) or word
                            seen.setdefault(key, set()).add(value["fixedColor"])

    assert set(seen) == {*Outcome, "generate", "tool", "env", "reward"}
    assert all(len(colours) == 1 for colours in seen.values())
    assert len({*seen["accepted"], *seen["rejected"], *seen["failed"], *seen["timeout"]}) == 4


def test_traces_are_searched_by_what_is_exported() -> None:
    searches = {
        target["query"]
        for panel in panels(dashboards()["rollout"])
        for target in panel["targets"]
        if target["datasource"]["type"] == "tempo"
    }
    resource = Resources("some-run", read_settings({})).of(1).attrs
    (run,) = (name for name, value in resource.items() if value == "some-run")

    slow = f'{{ resource.{run} =~ "${{run:pipe}}" && span.{place_name("kind")} = "{Kind.SESSION}"'
    assert searches == {f"{slow} && duration > ${{slow:raw}}s }}", "${trace:raw}"}
