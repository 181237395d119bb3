from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from rollscope.integrations.rl_insight.configuring import MonitorConfig, is_config, load_config


def test_defaults_are_those_of_the_original() -> None:
    config = load_config(None, {})
    assert config == MonitorConfig()
    assert (config.namespace, config.backend, config.report_port) == (
        "rl_insight_monitor",
        "ray",
        9092,
    )


def test_the_environment_beats_the_argument_and_that_the_defaults() -> None:
    given = {"server": {"url": "http://b:1", "namespace": "mine"}}
    assert load_config(given, {}).url == "http://b:1"
    merged = load_config(given, {"RL_INSIGHT_SERVER_URL": "a:18080"})
    assert (merged.url, merged.namespace, merged.report_port) == ("http://a:18080", "mine", 9092)


def test_the_earlier_form_is_read_too() -> None:
    given = {
        "namespace": "early",
        "backend": {"type": "local"},
        "prometheus": {"prometheus_port": "9191", "config_file": "/p.yml", "reload": {"mode": "x"}},
        "otel": {"traces_endpoint": "http://t:4318/v1/traces"},
    }
    config = load_config(given, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://u/v1/traces"})
    assert (config.namespace, config.backend) == ("early", "local")
    assert (config.prometheus_port, config.config_file, config.reload_mode) == (
        9191,
        "/p.yml",
        "x",
    )
    assert config.traces_endpoint == "http://u/v1/traces"


def test_objects_with_attributes_are_read_as_mappings_are() -> None:
    @dataclass
    class Server:
        url: str = "head:7077"
        backend: str = "local"

    @dataclass
    class Config:
        server: Server = field(default_factory=Server)
        legacy_gauges: bool = True

    config = load_config(Config(), {})
    assert (config.url, config.backend, config.legacy_gauges) == ("http://head:7077", "local", True)
    assert is_config(Config())
    assert is_config(SimpleNamespace())
    assert not any(map(is_config, (None, "verl", ["a:1"])))


@pytest.mark.parametrize(
    "given",
    [{"server": {"backend": "kafka"}}, {"prometheus": {"metrics_report_port": "many"}}],
)
def test_what_cannot_be_used_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"kafka|many"):
        load_config(given, {})


def test_a_port_may_be_any_free_one_or_none() -> None:
    def port(given: object) -> int | None:
        return load_config({"prometheus": {"metrics_report_port": given}}, {}).report_port

    assert (port(0), port(None), port("9100")) == (0, None, 9100)
