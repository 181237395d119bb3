from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from rollscope.server.monitors import Monitors
from rollscope.server.wiring import Reached, wires

OPEN = Reached("http", "127.0.0.1:7077", has_token=False)
GUARDED = Reached("https", "gpu-07.cluster", has_token=True)


def text_of(test: str, run: str, reached: Reached, monitors: Monitors | None = None) -> str:
    """Give the text of the wire that has this test."""
    (found,) = [one for one in wires(run, reached, monitors or Monitors()) if one.test == test]
    return found.text


def test_the_job_for_prometheus_names_this_server_and_nothing_else() -> None:
    (job,) = yaml.safe_load(text_of("prometheus", "run", OPEN))
    assert job == {
        "job_name": "rollscope",
        "scrape_interval": "5s",
        "static_configs": [{"targets": ["127.0.0.1:7077"]}],
    }


def test_the_job_reads_the_token_from_its_file_and_knows_the_port() -> None:
    kept = Monitors(token_file=Path("/a b/it's: a token"))

    (job,) = yaml.safe_load(text_of("prometheus", "run", GUARDED, kept))

    assert job["scheme"] == "https"
    assert job["static_configs"] == [{"targets": ["gpu-07.cluster:443"]}]
    assert job["authorization"] == {"credentials_file": "/a b/it's: a token"}


def test_variables_for_opentelemetry_survive_a_shell(tmp_path: Path) -> None:
    token = tmp_path / "it's the token"
    token.write_text("secret")
    text = text_of("otlp", "it's $HOME, a=b", GUARDED, Monitors(token_file=token))

    shown = subprocess.run(
        ["sh", "-c", f"{text}\nenv"], capture_output=True, text=True, check=True, env={}
    ).stdout.splitlines()

    assert "OTEL_EXPORTER_OTLP_ENDPOINT=https://gpu-07.cluster" in shown
    assert "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20secret" in shown
    assert "OTEL_RESOURCE_ATTRIBUTES=rollscope.run=it%27s%20$HOME%2C%20a%3Db" in shown


def test_programs_can_be_tried_where_their_address_is_given() -> None:
    both = Monitors("http://grafana:3000", "http://tempo:3200")

    assert text_of("grafana", "run", OPEN, both) == "http://grafana:3000"
    assert text_of("tempo", "run", OPEN, both) == "http://tempo:3200"
    assert [one.test for one in wires("run", OPEN, Monitors())] == ["prometheus", "otlp", ""]
