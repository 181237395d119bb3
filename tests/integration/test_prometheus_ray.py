"""A real Ray, of which every node looks after the Prometheus that runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.stack import update_prometheus_config
from tests.integration.test_prometheus_targets import OURS
from tests.monitoring.prometheus import running_prometheus
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = IGNORE_LEAKS_OF_RAY


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_cluster():
        yield


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for nothing: Ray keeps its connections as long as it runs."""


def test_every_node_writes_and_reloads_and_tells_what_went_wrong(tmp_path: Path) -> None:
    config = tmp_path / "prometheus.yml"
    config.write_text(OURS)
    with running_prometheus(config, tmp_path / "data") as prometheus:
        update = update_prometheus_config(
            ["127.0.0.1:1"], mode="ray", config_file=config, prometheus_url=prometheus.url
        )
        assert update.is_done, update
        assert update.note == ""
        assert [(node.is_job_added, node.is_reloaded) for node in update.nodes] == [(True, True)]
        assert "job_name: rollout" in prometheus.config()

    missing = update_prometheus_config(["h:1"], mode="ray", config_file=tmp_path / "none.yml")

    assert not missing.is_done
    assert "none.yml: No such file" in missing.nodes[0].problem
