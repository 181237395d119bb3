from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from rollscope.server.monitors import Monitors, dashboard_links, read_base_url, trace_links

TRACE = bytes(range(16))
GRAFANA = Monitors(grafana_url="https://grafana.cluster/g", tempo_url="http://tempo:3200")


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("https://grafana.cluster/g/", "https://grafana.cluster/g"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
    ],
)
def test_an_address_loses_its_last_slash(text: str, base: str) -> None:
    assert read_base_url(text) == base


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "grafana:3000",
        "http://",
        "http://host:port",
        "http://host:0",
        "http://[::1",
        "http://host/?x=1",
        "http://host/#x",
        "http://ho st/",
        "http://host/\n",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|path"):
        read_base_url(text)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="credentials") as refused:
        read_base_url("http://admin:secret@grafana:3000")
    assert "secret" not in str(refused.value)


def test_dashboards_open_for_the_run_whatever_it_is_called() -> None:
    links = dashboard_links(GRAFANA, "a&b/../c d")

    assert len(links) == 5
    for link in links:
        parts = urlsplit(link.url)
        assert (parts.scheme, parts.netloc) == ("https", "grafana.cluster")
        assert parts.path.startswith("/g/d/rollscope-")
        assert parse_qs(parts.query) == {"var-run": ["a&b/../c d"]}


def test_a_trace_opens_in_explore_through_the_data_source_of_tempo() -> None:
    (link,) = trace_links(GRAFANA, TRACE)

    shown = json.loads(parse_qs(urlsplit(link.url).query)["left"][0])
    assert shown["datasource"] == "rollscope-tempo"
    assert shown["queries"][0]["query"] == TRACE.hex()
    assert shown["queries"][0]["datasource"]["uid"] == "rollscope-tempo"


def test_a_trace_opens_in_tempo_where_there_is_no_grafana() -> None:
    (link,) = trace_links(Monitors(tempo_url="http://tempo:3200"), TRACE)
    assert link.url == f"http://tempo:3200/api/traces/{TRACE.hex()}"


def test_nothing_is_linked_where_nothing_was_given() -> None:
    assert dashboard_links(Monitors(), "run") == []
    assert trace_links(Monitors(), TRACE) == []
