from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import rollscope.integrations.rl_insight as rl_insight
from rollscope.integrations.rl_insight import targets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Give what servers are told, which is sent to nobody."""
    kept: list[tuple[Any, ...]] = []
    monkeypatch.setattr(targets, "post_in_background", lambda *args: kept.append(args))
    return kept


def test_the_later_form_tells_the_server(posted: list[tuple[Any, ...]]) -> None:
    config = {"server": {"url": "head:7077"}}
    rl_insight.update_prometheus_config(["a:1", "b:2"], "vllm", [{"r": 1}, None], config=config)
    ((url, path, body),) = posted
    assert (url, path) == ("http://head:7077", "/api/v1/prometheus/targets")
    assert body == {
        "job_name": "vllm",
        "targets": [{"target": "a:1", "labels": {"r": "1"}}, {"target": "b:2", "labels": {}}],
    }


def test_what_makes_no_sense_is_told_or_raised(
    posted: list[tuple[Any, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="2 addresses"):
        rl_insight.update_prometheus_config(["a:1", "b:2"], None, [{}])
    with pytest.raises(TypeError, match="nonsense"):
        rl_insight.update_prometheus_config(["a:1"], nonsense=1)
    rl_insight.update_prometheus_config([])
    rl_insight.update_prometheus_config(["a:1"])
    rl_insight.update_prometheus_config({}, ["a:1/?query"], reload_mode="local")
    assert "a:1/?query" in caplog.text
    assert "No addresses" in caplog.text
    assert "No server is named" in caplog.text
    assert not posted


@pytest.mark.parametrize("keyword", ["config", "conf", None])
def test_the_earlier_form_changes_the_file_of_a_prometheus(
    tmp_path: Path, keyword: str | None
) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text("global: {}\n")
    config = {"prometheus": {"config_file": str(file), "prometheus_port": 1}}
    args: tuple[Any, ...] = () if keyword else (config,)
    named: dict[str, Any] = {keyword: config} if keyword else {}
    for mode in ("none", "sometimes"):
        rl_insight.update_prometheus_config(
            *args, server_addresses=["a:1"], reload_mode=mode, **named
        )
        assert file.read_text() == "global: {}\n"
    rl_insight.update_prometheus_config(
        *args, server_addresses=["a:1"], reload_mode="local", **named
    )
    assert '- job_name: "trainer_metrics"' in file.read_text()
    (group,) = json.loads((tmp_path / "rollscope-targets/trainer_metrics.json").read_text())
    assert group["targets"] == ["a:1"]
