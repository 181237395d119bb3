from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import get_args

import pytest
import yaml

from rollscope.cli.main import main, make_parser
from rollscope.errors import CommandError
from rollscope.stack.exporting import Form, stack_files

FORMS: tuple[Form, ...] = get_args(Form)
OPTIONS = {"native": [], "compose": ["--compose"], "existing": ["--for", "existing"]}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_readme_that_names_only_files_that_are_there(
    tmp_path: Path, form: Form, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out dir"
    assert main(["server", "config", "--out", str(out), *OPTIONS[form]]) == 0
    assert str(out / "README.md") in capsys.readouterr().out
    text = (out / "README.md").read_text()
    for name in ("scrape.yml", "compose.yaml", "grafana/grafana.ini", "grafana/password"):
        assert name not in text or (out / name).exists()
    commands = [
        shlex.split(line)
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("    rollscope ")
    ]
    assert commands
    for command in commands:
        make_parser().parse_args(command[1:])


def test_the_files_for_a_stack_of_ones_own_pass_promtool(tmp_path: Path) -> None:
    assert main(["server", "config", "--out", str(tmp_path)]) == 0
    path = tmp_path / "prometheus/prometheus.yml"
    subprocess.run(["promtool", "check", "config", path], check=True, capture_output=True)
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "grafana/password").stat().st_mode & 0o077 == 0


def test_the_jobs_for_an_existing_prometheus_fit_into_its_configuration(tmp_path: Path) -> None:
    files = stack_files("existing", tmp_path, "https://head:7443/", "15d")
    own, engines = yaml.safe_load(files["scrape.yml"])["scrape_configs"]
    assert own["scheme"] == "https"
    assert own["static_configs"][0]["targets"] == ["head:7443"]
    assert engines["http_sd_configs"][0]["url"] == "https://head:7443/api/v1/sd"
    (tmp_path / "token").write_text("a-token")
    text = files["scrape.yml"].replace("/etc/prometheus/rollscope-token", f"{tmp_path}/token")
    (tmp_path / "prometheus.yml").write_text("global:\n  scrape_interval: 30s\n" + text)
    path = tmp_path / "prometheus.yml"
    subprocess.run(["promtool", "check", "config", path], check=True, capture_output=True)
    sources = yaml.safe_load(files["grafana/provisioning/datasources/rollscope.yaml"])
    assert not any(each.get("isDefault") for each in sources["datasources"])
    assert 'rollscope_url: "https://head:7443/"' in files["README.md"]


def test_nothing_is_replaced_without_force_and_secrets_never(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["server", "config", *out]) == 0
    token = (tmp_path / "token").read_text()
    (tmp_path / "README.md").write_text("mine")
    assert main(["server", "config", *out]) == 1
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text() == "mine"
    assert main(["server", "config", *out, "--force"]) == 0
    assert (tmp_path / "README.md").read_text() != "mine"
    assert (tmp_path / "token").read_text() == token


def test_data_directories_of_containers_are_made_by_their_user(tmp_path: Path) -> None:
    assert main(["server", "config", "--compose", "--out", str(tmp_path)]) == 0
    compose = yaml.safe_load((tmp_path / "compose.yaml").read_text())
    for service in compose["services"].values():
        for volume in service["volumes"]:
            assert (tmp_path / volume.partition(":")[0]).exists()


@pytest.mark.parametrize(
    ("page", "retention", "told"),
    [
        ("ftp://head/", "15d", "is no address"),
        ("http://head:port/", "15d", "is no address"),
        ("http:///", "15d", "is no address"),
        ("http://head/?token=x", "15d", "is no address"),
        ("http://head/", "15 days", "is no time"),
        ("http://head/", "0d", "is no time"),
    ],
)
def test_an_address_or_a_time_that_is_none_is_refused(
    tmp_path: Path, page: str, retention: str, told: str
) -> None:
    with pytest.raises(CommandError, match=told):
        stack_files("native", tmp_path, page, retention)


def test_both_forms_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "x")]
    assert main(["server", "config", "--compose", "--for", "existing", *out]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
