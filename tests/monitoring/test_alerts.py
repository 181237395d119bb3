"""Every alert fires from a real run, through a real Prometheus, to a real Alertmanager.

The rules are those that are shipped, in less time: nothing has to last, windows of minutes become
seconds, and a run is silent after three. What they compare and with what stays as it is.
"""

from __future__ import annotations

import re
import shutil
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.monitoring.prometheus import wait_until
from tests.monitoring.shipped import RULES, alerts
from tests.monitoring.watched import RUN, Watched, watched

if TYPE_CHECKING:
    from collections.abc import Iterator

Alert = dict[str, Any]

_WINDOWS = {"5m": "4s", "10m": "4s", "15m": "4s", "30m": "4s", "1h": "12s"}
_PATIENCE_S = 40.0


def shortened(rules: str) -> str:
    """Give the rules in less time."""
    rules = re.sub(r"\[(\d+[mh])\]", lambda found: f"[{_WINDOWS[found[1]]}]", rules)
    rules = re.sub(r"offset (\d+[mh])", lambda found: f"offset {_WINDOWS[found[1]]}", rules)
    rules = re.sub(r"^( +for:) \w+$", r"\1 0s", rules, flags=re.MULTILINE)
    rules = rules.replace("interval: 15s", "interval: 1s")
    return rules.replace("age_seconds) > 120", "age_seconds) > 3")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    rules = shortened(RULES.read_text())
    with watched(tmp_path_factory.mktemp("alerts"), rules) as site:
        yield site


@pytest.fixture(scope="module")
def fired(site: Watched) -> dict[str, list[Alert]]:
    """Let everything go wrong but for the server, and give what Alertmanager was told, by name."""
    told: dict[str, list[Alert]] = {}
    wait = partial(_wait_for, site, told)
    wait("RollscopeStuckSessions")
    wait("RollscopeTailTooLong")
    wait("RollscopeRecordsDropped")
    wait("RollscopeStalenessAtBound")
    site.prometheus.wait_until(lambda: site.prometheus.query(_HAS_A_PAST), _PATIENCE_S)
    _wait_without(site, "RollscopeAcceptanceCollapse")
    assert site.program.stdin is not None
    site.program.stdin.write("collapse\n")
    site.program.stdin.flush()
    wait("RollscopeAcceptanceCollapse")
    _wait_without(site, "RollscopeTargetDown")
    site.engines.kill()
    wait("RollscopeTargetDown", 2)  # engines, each of which is found out about when it is asked
    # Prometheus finds out by itself; so does the server.
    site.prometheus.wait_until(lambda: site.prometheus.query("rollscope_target_up == 0"))
    _wait_without(site, "RollscopeRunSilent")
    site.program.send_signal(signal.SIGSTOP)
    wait("RollscopeRunSilent")
    return told


_HAS_A_PAST = "run:rollscope_acceptance:ratio1h offset 4s > 0.1"


def _named(site: Watched, name: str) -> list[Alert]:
    return [one for one in site.alertmanager.alerts() if one["labels"]["alertname"] == name]


def _wait_without(site: Watched, name: str) -> None:
    """See that it does not fire yet; on a busy machine it may have, for a moment."""
    site.prometheus.wait_until(lambda: not _named(site, name), _PATIENCE_S, f"no {name}")


def _wait_for(site: Watched, told: dict[str, list[Alert]], name: str, number: int = 1) -> None:
    """Wait until as many alerts of a name have come, each of something else."""

    def look() -> list[Alert]:
        found = _named(site, name)
        return found if len(found) >= number else []

    told[name] = site.prometheus.wait_until(look, _PATIENCE_S, name)


@pytest.mark.parametrize(
    ("name", "page", "labels"),
    [
        ("RollscopeStuckSessions", "now", {"phase": "toolcall"}),
        ("RollscopeTailTooLong", "steps", {}),
        ("RollscopeAcceptanceCollapse", "sessions", {}),
        ("RollscopeStalenessAtBound", "steps", {}),
        ("RollscopeRecordsDropped", "health", {"where": "payload", "reason": "redact"}),
        ("RollscopeTargetDown", "now", {"replica": "vllm-0"}),
        ("RollscopeTargetDown", "now", {"replica": "sglang-0"}),
        ("RollscopeRunSilent", "health", {}),
    ],
)
def test_an_alert_reaches_alertmanager_with_all_that_it_has_to_say(
    site: Watched, fired: dict[str, list[Alert]], name: str, page: str, labels: dict[str, str]
) -> None:
    (alert,) = (one for one in fired[name] if labels.items() <= one["labels"].items())

    assert alert["labels"]["run"] == RUN
    assert alert["labels"]["severity"] == alerts()[name]["labels"]["severity"]
    notes = alert["annotations"]
    assert notes["link"] == f"{site.url}#/{RUN}/{page}"
    for text in (notes["summary"], notes["description"]):
        assert text
        assert "{{" not in text
        assert "<no value>" not in text
        assert "%!" not in text


def test_descriptions_say_numbers(fired: dict[str, list[Alert]]) -> None:
    stuck, silent = fired["RollscopeStuckSessions"][0], fired["RollscopeRunSilent"][0]
    collapse, tail = fired["RollscopeAcceptanceCollapse"][0], fired["RollscopeTailTooLong"][0]

    assert stuck["annotations"]["summary"] == f"Sessions of {RUN} are stuck in toolcall: 1"
    assert re.search(r"is \d+(\.\d+)?s old", silent["annotations"]["description"])
    for alert in (collapse, tail):
        assert re.search(r"\d+(\.\d+)?% ", alert["annotations"]["description"])


def test_links_open_the_run_in_a_browser(fired: dict[str, list[Alert]]) -> None:
    links = {told[0]["annotations"]["link"] for told in fired.values()}
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page()
        for link in sorted(links):
            name = link.rpartition("/")[2]
            page.goto(link)
            expect(page).to_have_title(f"{RUN} · {name} · Rollscope", timeout=_PATIENCE_S * 1e3)
            # A run that is not there has a sentence instead.
            expect(page.locator("main h1")).to_have_text(
                name.capitalize(), timeout=_PATIENCE_S * 1e3
            )
        chromium.close()


def test_a_server_that_is_gone_is_told_of_too(site: Watched, fired: dict[str, list[Alert]]) -> None:
    _wait_without(site, "RollscopeServerDown")
    site.server.terminate()

    (alert,) = wait_until(lambda: _named(site, "RollscopeServerDown"), _PATIENCE_S)

    assert alert["labels"]["severity"] == "critical"
    assert alert["labels"]["instance"] in site.url
    assert alert["annotations"]["link"] == site.url
