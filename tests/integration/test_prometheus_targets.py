"""Targets that a real Prometheus learns of: from our server, and by a change of its own files."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.collect.scraping import ScrapeSettings
from rollscope.stack import update_prometheus_config
from tests.integration.exposing import exposing
from tests.integration.served import TOKEN, served
from tests.integration.test_scraping import change, recording
from tests.monitoring.prometheus import Prometheus, running_prometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DISCOVERING = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: by_file
    file_sd_configs: [{{files: ["{directory}/*.json"]}}]
  - job_name: by_http
    http_sd_configs:
      - url: {url}/api/v1/sd
        refresh_interval: 1s
        authorization: {{type: Bearer, credentials: {token}}}
"""
OURS = """\
# Written by hand.
global:
  scrape_interval: 1s   # often

scrape_configs:
  - job_name: 'own'
    static_configs: [{targets: ["127.0.0.1:1"]}]
"""


def pools(prometheus: Prometheus) -> dict[str, list[dict[str, str]]]:
    """Give the labels of all targets by where Prometheus has them from."""
    found: dict[str, list[dict[str, str]]] = {}
    for one in prometheus.targets():
        found.setdefault(one["scrapePool"], []).append(one["labels"])
    return found


def test_prometheus_follows_the_targets_of_the_server_by_file_and_by_request(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "sd"
    directory.mkdir()
    (directory / "theirs.json").write_text("[]")
    recording(tmp_path / "runs")

    async def visit() -> None:
        settings = ScrapeSettings(sd_dir=directory)
        with exposing() as exposer:
            async with asyncio.timeout(60), served(tmp_path / "runs", scrape=settings) as site:
                config = DISCOVERING.format(directory=directory, url=site.url, token=TOKEN)
                with running_prometheus(config, tmp_path / "prometheus") as prometheus:

                    async def seen(look: Callable[[], Any]) -> Any:
                        return await asyncio.to_thread(prometheus.wait_until, look)

                    target = {"url": exposer.url, "replica": "r0", "labels": {"the rack": "3"}}
                    assert (await change(site, "POST", "live/targets", target)).status == 200
                    labels = {
                        "instance": exposer.address,
                        "job": "engines",
                        "replica": "r0",
                        "run": "live",
                        "the_rack": "3",
                    }
                    both = {"by_file": [labels], "by_http": [labels]}
                    await seen(lambda: pools(prometheus) == both)
                    asked = 'vllm:kv_cache_usage_perc{replica="r0",run="live"}'
                    assert await seen(partial(prometheus.value, asked)) == 0.25

                    where = f"live/targets?url={exposer.url}"
                    assert (await change(site, "DELETE", where)).status == 204
                    await seen(lambda: pools(prometheus) == {})

    asyncio.run(visit())
    assert json.loads((directory / "theirs.json").read_text()) == []
    assert sorted(path.name for path in directory.iterdir()) == ["rollscope.json", "theirs.json"]


def test_a_job_is_added_once_to_ones_own_prometheus_and_its_targets_follow(tmp_path: Path) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(OURS)
    with (
        exposing() as first,
        exposing() as second,
        running_prometheus(config, tmp_path / "data") as prometheus,
    ):
        update = partial(update_prometheus_config, job_name="vllm", prometheus_url=prometheus.url)
        added = update([first.address], labels=[{"rank": 0}])  # it is asked for its file

        assert added.is_done, added
        assert (added.nodes[0].is_job_added, added.nodes[0].is_reloaded) == (True, True)
        asked = 'vllm:kv_cache_usage_perc{job="vllm",rank="0"}'
        assert prometheus.wait_until(partial(prometheus.value, asked)) == 0.25

        written = config.read_text()
        again = update([second.url], mode="off")

        assert again.is_done
        assert not again.nodes[0].is_job_added
        assert config.read_text() == written
        prometheus.wait_until(
            lambda: [one["scrapeUrl"] for one in prometheus.targets("vllm")] == [second.url]
        )
    kept, text = iter(written.splitlines()), OURS.splitlines()
    assert all(line in kept for line in text)
    assert added.nodes[0].backup
    assert (tmp_path / added.nodes[0].backup).read_text() == OURS


@pytest.mark.parametrize("has_checker", [True, False])
def test_what_prometheus_would_refuse_is_not_left_in_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_checker: bool
) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(OURS)
    with running_prometheus(config, tmp_path / "data") as prometheus:
        wrong = OURS + "no_such_thing: 1\n"
        config.write_text(wrong)
        if not has_checker:
            monkeypatch.setenv("PATH", str(tmp_path))
        refused = update_prometheus_config(
            ["127.0.0.1:1"], config_file=config, prometheus_url=prometheus.url
        )

        assert not refused.is_done
        assert "no_such_thing" in refused.nodes[0].problem
        assert config.read_text() == wrong
        assert "job_name: own" in prometheus.config()
        assert "job_name: rollout" not in prometheus.config()
        assert sorted(path.suffix for path in tmp_path.glob("*prometheus.yml*")) == (
            [".yml"] if has_checker else [".rollscope-backup", ".yml"]
        )
