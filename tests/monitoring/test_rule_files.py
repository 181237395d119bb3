"""Rules: promtool takes them, each alert fires when it should, and says what a reader needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rollscope.exposing.catalogue import FAMILIES
from rollscope.metrics.families import FamilyKind
from tests.monitoring.shipped import RULES, alerts, metric_names, recorded

CASES = Path(__file__).parent / "rules"
DOC = Path(__file__).parents[2] / "docs" / "alerts.md"


def series_of_ours() -> set[str]:
    histograms = {one.name for one in FAMILIES if one.kind is FamilyKind.HISTOGRAM}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    return {one.name for one in FAMILIES} - histograms | parts


def test_promtool_finds_nothing_wrong() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alerts()) + len(recorded())} rules found" in done.stdout


@pytest.mark.parametrize("cases", ["recording.yml", "alerts.yml"])
def test_rules_give_and_fire_what_they_should(cases: str) -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", str(CASES / cases)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_and_a_place_in_the_docs() -> None:
    cases, doc = (CASES / "alerts.yml").read_text(), DOC.read_text()

    for name in alerts():
        assert f'alertname="{name}", alertstate="firing"' in cases, name
        assert f"## {name}\n" in doc, name


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_to_look(name: str) -> None:
    alert = alerts()[name]
    notes = alert["annotations"]

    assert alert["labels"]["severity"] in ("warning", "critical")
    assert set(notes) == {"summary", "description", "link"}
    assert re.search(r"\{\{ \$(value|labels\.\w+)", notes["summary"])
    assert len(notes["description"]) > 100
    assert notes["link"].startswith("{{ $externalLabels.rollscope_url }}")


def test_rules_are_about_series_that_there_are() -> None:
    known = series_of_ours() | set(recorded()) | {"up"}
    queries = [*recorded().values(), *(alert["expr"] for alert in alerts().values())]

    unknown = {name for query in queries for name in metric_names(query)} - known

    assert unknown == set()
