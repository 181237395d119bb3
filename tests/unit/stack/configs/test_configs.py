"""Every configuration is read back by somebody else's reader, and checked by its program's tool."""

from __future__ import annotations

import subprocess
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard

from rollscope.errors import CommandError
from rollscope.stack.configs.alertmanager import alertmanager_config
from rollscope.stack.configs.compose import IMAGES, compose_file, compose_layout
from rollscope.stack.configs.grafana import GrafanaSetup, grafana_ini, provisioning
from rollscope.stack.configs.layout import Layout, config_files, shipped
from rollscope.stack.configs.tempo import TempoSetup, tempo_config
from tests.unit.stack.configs.tempo_keys import TEMPO_KEYS, unknown_keys

EVERYTHING = ("prometheus", "alertmanager", "tempo", "grafana")
PORTS = {"prometheus": 9090, "alertmanager": 9093, "tempo": 3200, "grafana": 3000}


def layout(home: Path, *names: str, has_target_files: bool = True) -> Layout:
    return Layout(
        page="http://node7:7077/",
        rollscope="127.0.0.1:7077",
        token_file=str(home / "token"),
        homes={name: str(home / name) for name in names},
        data={name: str(home / name / "data") for name in names},
        addresses={name: f"127.0.0.1:{PORTS[name]}" for name in names},
        has_target_files=has_target_files,
        tempo=TempoSetup(data=str(home / "tempo/data")) if "tempo" in names else None,
    )


def written(home: Path, *names: str, has_target_files: bool = True) -> dict[str, str]:
    files = config_files(layout(home, *names, has_target_files=has_target_files), "secret")
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "token").write_text("a-token\n")
    return files


def check(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("names", [("prometheus",), EVERYTHING])
@pytest.mark.parametrize("has_target_files", [True, False])
def test_promtool_accepts_the_configuration_of_prometheus(
    tmp_path: Path, names: tuple[str, ...], has_target_files: bool
) -> None:
    written(tmp_path, *names, has_target_files=has_target_files)
    check("promtool", "check", "config", tmp_path / "prometheus/prometheus.yml")


def test_prometheus_asks_every_member_and_links_to_the_page(tmp_path: Path) -> None:
    config = yaml.safe_load(written(tmp_path, *EVERYTHING)["prometheus/prometheus.yml"])
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert set(jobs) == {"rollscope", "engines", *EVERYTHING}
    assert jobs["rollscope"]["scrape_interval"] == "5s"
    assert jobs["rollscope"]["authorization"]["credentials_file"] == str(tmp_path / "token")
    assert jobs["rollscope"]["static_configs"] == [
        {"targets": ["127.0.0.1:7077"], "labels": {"instance": "node7:7077"}}
    ]
    assert jobs["engines"]["file_sd_configs"] == [
        {"files": [str(tmp_path / "prometheus/targets/*.json")]}
    ]
    assert config["global"]["external_labels"] == {"rollscope_url": "http://node7:7077/"}
    assert config["rule_files"] == [str(tmp_path / "prometheus/rules/*.yml")]
    (alerting,) = config["alerting"]["alertmanagers"]
    assert alerting["static_configs"] == [{"targets": ["127.0.0.1:9093"]}]


def test_prometheus_alone_asks_nobody_who_is_not_there(tmp_path: Path) -> None:
    config = yaml.safe_load(written(tmp_path, "prometheus")["prometheus/prometheus.yml"])
    assert [job["job_name"] for job in config["scrape_configs"]] == [
        *("rollscope", "engines", "prometheus")
    ]
    assert "alerting" not in config


def test_amtool_accepts_the_configuration_of_alertmanager(tmp_path: Path) -> None:
    (tmp_path / "alertmanager.yml").write_text(alertmanager_config())
    assert "1 receivers" in check("amtool", "check-config", tmp_path / "alertmanager.yml")


@pytest.mark.parametrize("major", [2, 3])
def test_tempo_is_told_only_what_its_documentation_names(tmp_path: Path, major: int) -> None:
    config = yaml.safe_load(tempo_config(TempoSetup(data=str(tmp_path), major=major)))
    assert unknown_keys(config, TEMPO_KEYS[major]) == []
    assert unknown_keys(config, TEMPO_KEYS[5 - major]) != [], "the other version would refuse it"
    assert unknown_keys({**config, "made_up": 1}, TEMPO_KEYS[major]) == ["made_up"]


def test_tempo_3_writes_nowhere_but_into_its_data(tmp_path: Path) -> None:
    config = yaml.safe_load(tempo_config(TempoSetup(data=str(tmp_path), major=3)))
    places = [
        *(config["live_store"]["wal"]["path"], config["live_store"]["shutdown_marker_dir"]),
        *(
            config["backend_scheduler"]["local_work_path"],
            config["storage"]["trace"]["wal"]["path"],
        ),
    ]
    assert all(Path(place).is_relative_to(tmp_path) for place in places)


def test_tempo_listens_on_this_machine_only_and_calls_nobody(tmp_path: Path) -> None:
    config = yaml.safe_load(tempo_config(TempoSetup(data=str(tmp_path), otlp_http_port=5000)))
    protocols = config["distributor"]["receivers"]["otlp"]["protocols"]
    assert protocols == {
        "http": {"endpoint": "127.0.0.1:5000"},
        "grpc": {"endpoint": "127.0.0.1:4417"},
    }
    assert config["server"]["http_listen_address"] == "127.0.0.1"
    assert config["server"]["grpc_listen_address"] == "127.0.0.1"
    assert config["usage_report"] == {"reporting_enabled": False}
    assert "metrics_generator" not in config


def test_grafana_lets_everybody_look_and_calls_nobody(tmp_path: Path) -> None:
    files = written(tmp_path, *EVERYTHING)
    parser = ConfigParser(interpolation=None)
    parser.read_string(files["grafana/grafana.ini"])
    home = tmp_path / "grafana"
    assert parser["server"]["http_addr"] == "127.0.0.1"
    assert parser["paths"]["provisioning"] == str(home / "provisioning")
    assert parser["security"]["admin_password"] == f"$__file{{{home}/password}}"
    assert parser["auth.anonymous"]["org_role"] == "Viewer"
    assert all(value == "false" for value in parser["analytics"].values())
    assert files["grafana/password"] == "secret"


def sources(files: dict[str, str]) -> dict[str, Any]:
    config = yaml.safe_load(files["grafana/provisioning/datasources/rollscope.yaml"])
    assert config["apiVersion"] == 1
    return {source["uid"]: source for source in config["datasources"]}


def test_grafana_knows_both_sources_and_the_ways_between_them(tmp_path: Path) -> None:
    found = sources(written(tmp_path, *EVERYTHING))
    assert set(found) == {"rollscope-prometheus", "rollscope-tempo"}
    prometheus, tempo = found["rollscope-prometheus"], found["rollscope-tempo"]
    assert prometheus["url"] == "http://127.0.0.1:9090"
    to_page, to_trace = prometheus["jsonData"]["exemplarTraceIdDestinations"]
    assert to_trace["datasourceUid"] == "rollscope-tempo"
    assert to_page["url"].startswith("http://node7:7077/#/$${__data.fields.run}/session/")
    assert tempo["jsonData"]["tracesToMetrics"]["datasourceUid"] == "rollscope-prometheus"


def test_grafana_without_tempo_or_prometheus_has_no_links_to_them(tmp_path: Path) -> None:
    found = sources(written(tmp_path, "grafana", "prometheus"))
    (link,) = found["rollscope-prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert link["name"] == "session"
    found = sources(written(tmp_path, "grafana", "tempo"))
    assert set(found) == {"rollscope-tempo"}
    assert "tracesToMetrics" not in found["rollscope-tempo"]["jsonData"]


def test_grafana_finds_the_dashboards_where_they_are_written(tmp_path: Path) -> None:
    files = written(tmp_path, *EVERYTHING)
    config = yaml.safe_load(files["grafana/provisioning/dashboards/rollscope.yaml"])
    (provider,) = config["providers"]
    place = Path(provider["options"]["path"])
    assert place == tmp_path / "grafana/dashboards"
    assert {path.name for path in place.iterdir()} == set(shipped("dashboards", ".json"))
    parser = ConfigParser(interpolation=None)
    parser.read_string(files["grafana/grafana.ini"])
    first = Path(parser["dashboards"]["default_home_dashboard_path"])
    assert Dashboard.from_json(yaml.safe_load(first.read_text())).uid == "rollscope-overview"


def test_more_dashboards_get_a_provider_of_their_own_and_none_shipped_is_no_error() -> None:
    setup = GrafanaSetup(
        page="http://a/",
        home="/h",
        data="/d",
        dashboards=("/ours", "/theirs"),
        prometheus=None,
        tempo=None,
    )
    config = yaml.safe_load(provisioning(setup)["dashboards/rollscope.yaml"])
    assert [each["options"]["path"] for each in config["providers"]] == ["/ours", "/theirs"]
    assert len({each["name"] for each in config["providers"]}) == 2
    assert "dashboards" not in grafana_ini(setup)
    assert shipped("no-such-folder", ".json") == {}


def test_a_path_that_grafana_would_expand_is_refused() -> None:
    setup = GrafanaSetup(
        page="http://a/", home="/h/${HOME}", data="/d", dashboards=(), prometheus=None, tempo=None
    )
    with pytest.raises(CommandError, match="Grafana cannot be told"):
        grafana_ini(setup)


def test_containers_are_pinned_published_on_loopback_and_find_their_files() -> None:
    services = yaml.safe_load(compose_file(1000, 100, "15d"))["services"]
    files = config_files(compose_layout("http://127.0.0.1:7077/", 7077, 24), "secret")
    assert set(services) == set(IMAGES)
    for name, service in services.items():
        assert service["image"].rpartition(":")[2].lstrip("v")[0].isdigit()
        assert service["user"] == "1000:100"
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert f"./{name}:/etc/{name}:ro" in service["volumes"]
        assert any(path.startswith(f"{name}/") for path in files)
    prometheus = yaml.safe_load(files["prometheus/prometheus.yml"])
    jobs = {job["job_name"]: job for job in prometheus["scrape_configs"]}
    assert jobs["rollscope"]["static_configs"][0]["targets"] == ["host.docker.internal:7077"]
    assert jobs["tempo"]["static_configs"][0]["targets"] == ["tempo:3200"]
    (found,) = jobs["engines"]["http_sd_configs"]
    assert found["url"] == "http://host.docker.internal:7077/api/v1/sd"
    assert found["authorization"]["credentials_file"] == "/etc/rollscope/token"
    assert "./token:/etc/rollscope/token:ro" in services["prometheus"]["volumes"]
