"""Every query of every dashboard finds data in a real Prometheus that watches a lively run."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest

from rollscope.store.fold import read_run
from tests.monitoring.prometheus import wait_until
from tests.monitoring.shipped import RULES, asked, dashboards
from tests.monitoring.watched import RUN, Watched, watched

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
_INTERVAL = {"__rate_interval": "5s"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    # As they are shipped, only looked at more often.
    rules = RULES.read_text().replace("interval: 15s", "interval: 1s")
    with watched(tmp_path_factory.mktemp("dashboards"), rules) as site:
        yield site


def filled(text: str, values: dict[str, str]) -> str:
    """Put values in place of variables, as Grafana does."""
    return re.sub(r"\$\{?(\w+)(?::\w+)?\}?", lambda found: values[found[1]], text)


def choices(site: Watched, variable: dict[str, Any], values: dict[str, str]) -> list[str]:
    """Give what a variable lets choose from, as Grafana works it out."""
    found = _LABEL_VALUES.fullmatch(filled(variable["query"]["query"], values))
    assert found is not None, variable["query"]
    names = site.prometheus.api(f"label/{found[2]}/values", **{"match[]": found[1]})
    pattern = re.compile(variable["regex"].strip("/") or "(.*)")
    fits = [fit for name in names if (fit := pattern.fullmatch(name))]
    return [fit[1] if pattern.groups and fit.lastindex == 1 else fit[0] for fit in fits]


def chosen_values(site: Watched, dashboard: str) -> dict[str, str]:
    """Choose what Grafana chooses at first: all of many, or the first."""
    values = dict(_INTERVAL)
    for variable in dashboards()[dashboard]["templating"]["list"]:
        if variable["type"] == "query":
            found = choices(site, variable, {**values, "run": ".*"})
            values[variable["name"]] = ".*" if variable["multi"] else found[0] if found else "none"
    return values


def what_finds_nothing(site: Watched) -> list[str]:
    missing = []
    values = {name: chosen_values(site, name) for name in dashboards()}
    for one in asked():
        query = filled(one.query, values[one.dashboard])
        try:
            found = site.prometheus.query(query)
        except HTTPError as error:
            missing.append(f"{one.dashboard}: {one.panel}: {query}: {error.read().decode()}")
            continue
        if all(math.isnan(float(series["value"][1])) for series in found):
            missing.append(f"{one.dashboard}: {one.panel}: {query}")
    return missing


def test_every_query_of_every_panel_finds_data(site: Watched) -> None:
    missing: list[str] = ["not asked yet"]

    def look() -> bool:
        missing[:] = what_finds_nothing(site)
        return not missing

    try:
        wait_until(look, 40)
    except TimeoutError:
        pytest.fail("these find nothing:\n" + "\n".join(missing))


def test_every_choice_has_something_to_choose_from(site: Watched) -> None:
    for name, dashboard in dashboards().items():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                look = partial(choices, site, variable, {"run": ".*"})
                wait_until(look, what=f"{name}: {variable['name']}")


def test_exemplars_of_slow_buckets_name_traces_of_sessions(site: Watched) -> None:
    sessions = f'rollscope_session_duration_seconds_bucket{{run="{RUN}"}}'
    found = site.prometheus.wait_until(lambda: site.prometheus.exemplars(sessions))

    shown = [exemplar for series in found for exemplar in series["exemplars"]]
    run = read_run(site.lab.run.with_name(RUN))
    traces = {span.trace_id for span in run.spans.values() if span.kind == "session"}
    assert {one["labels"]["trace_id"] for one in shown} <= traces
    slow = [one for one in shown if float(one["value"]) > 0.5]
    assert slow
    assert all(one["labels"]["session"].endswith("#7") for one in slow)
