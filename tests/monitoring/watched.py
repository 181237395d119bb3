"""A lively run, the server that shows it, engines, and a Prometheus that watches all of them."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from tests.integration.support import Lab
from tests.monitoring.prometheus import free_port, running_alertmanager, running_prometheus

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.monitoring.prometheus import Alertmanager, Prometheus

__all__ = ["RUN", "Watched", "watched"]

RUN = "lively"
_PROGRAM = Path(__file__).parent / "lively.py"
_RECEIVER = {"route": {"receiver": "none", "group_wait": "0s"}, "receivers": [{"name": "none"}]}


class Watched(NamedTuple):
    """All of them."""

    lab: Lab
    program: subprocess.Popen[str]
    server: subprocess.Popen[str]
    url: str
    """Of the page, with a slash at its end."""
    prometheus: Prometheus
    alertmanager: Alertmanager
    engines: subprocess.Popen[str]


@contextmanager
def watched(folder: Path, rules: str) -> Iterator[Watched]:
    """Record, show and watch a run while the block runs.

    Args:
        folder: For everything that is written.
        rules: The rules that Prometheus goes by.
    """
    lab = Lab(folder)
    with ExitStack() as stack:
        stack.callback(lab.close)
        engines, names = _start_engines(lab)
        program = lab.launch([sys.executable, str(_PROGRAM)], env={"ROLLSCOPE_RUN": RUN})
        server, url = _serve(lab, *names)
        alertmanager = stack.enter_context(
            running_alertmanager(yaml.safe_dump(_RECEIVER), folder / "alertmanager")
        )
        config = _configuration(folder, url, alertmanager.address)
        (folder / "rules.yml").write_text(rules)
        prometheus = stack.enter_context(
            running_prometheus(yaml.safe_dump(config), folder / "prometheus")
        )
        yield Watched(lab, program, server, url, prometheus, alertmanager, engines)


def _start_engines(lab: Lab) -> tuple[subprocess.Popen[str], list[str]]:
    """Start two engines, and name them as the server's option takes them."""
    engines = lab.launch([sys.executable, "-m", "tests.monitoring.engines"])
    assert engines.stdout is not None
    return engines, engines.stdout.readline().split()


def _serve(lab: Lab, *engines: str) -> tuple[subprocess.Popen[str], str]:
    options = [word for engine in engines for word in ("--scrape", engine)]
    # Nobody listens there, so that deliveries fail.
    pushing = ["--remote-write", f"http://127.0.0.1:{free_port()}/api/v1/write", "--push-every=1"]
    server = lab.launch(
        lab.command(
            *("view", "--dir", lab.run.parent, "--port", "0", "--no-token"),
            *("--scrape-every", "1", "--sd-dir", lab.folder / "sd", *options, *pushing),
        )
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    assert " at http://" in line, line + server.communicate()[1]
    return server, line.split(" at ")[1].strip()


def _configuration(folder: Path, url: str, alertmanager: str) -> dict[str, object]:
    address = url.removeprefix("http://").rstrip("/")
    discovered = {"files": [str(folder / "sd" / "*.json")], "refresh_interval": "1s"}
    return {
        "global": {
            "scrape_interval": "1s",
            "evaluation_interval": "1s",
            "external_labels": {"rollscope_url": url},
        },
        "rule_files": [str(folder / "rules.yml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [
            {"job_name": "rollscope", "static_configs": [{"targets": [address]}]},
            {"job_name": "engines", "file_sd_configs": [discovered]},
        ],
    }
