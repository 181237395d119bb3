from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollscope.integrations.rl_insight.command import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Asked:
    """Stands for the command line, and keeps what it is asked."""

    def __init__(self) -> None:
        self.words: list[list[str]] = []

    def __call__(self, words: Sequence[str]) -> int:
        self.words.append(list(words))
        return 0


def test_a_short_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / "server.yml"
    config.write_text("server:\n  port: 18080\nprometheus:\n  something: else\n")
    asked = Asked()
    words = ["server", "start", "--config", str(config), "--auto-port", "--log-dir", "logs"]
    assert main([*words, "--extra-dashboard-dir", "more", "--detach"], asked) == 0
    assert asked.words == [
        [
            "server",
            "start",
            "--port",
            "18080",
            "--state-dir",
            "logs",
            "--dashboards",
            "more",
            "--detach",
        ]
    ]


def test_stop_and_install_do_as_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    asked = Asked()
    assert main(["server", "stop"], asked) == 0
    assert main(["server", "install", "--force"], asked) == 0
    assert asked.words == [["server", "stop"]]
    assert "Nothing has to be installed" in capsys.readouterr().out


def test_targets_of_a_file_are_added_job_by_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RL_INSIGHT_SERVER_URL", "head:7077")
    file = tmp_path / "jobs.yml"
    file.write_text("jobs:\n- job_name: vllm\n  targets: ['a:1', 'b:2']\n  labels: {rack: 3}\n")
    asked = Asked()
    assert main(["server", "targets", "add", str(file)], asked) == 0
    assert asked.words == [
        [
            "targets",
            "add",
            "a:1",
            "b:2",
            "--label",
            "rack=3",
            "--label",
            "rl_insight_job=vllm",
            "--server",
            "http://head:7077",
        ]
    ]


@pytest.mark.parametrize(
    "held", [None, {}, {"jobs": [1]}, {"jobs": [{"targets": "a:1"}]}, [1], {"jobs": [{}]}]
)
def test_a_bad_file_is_an_error_of_usage(tmp_path: Path, held: object) -> None:
    file = tmp_path / "jobs.json"
    if held is not None:
        file.write_text(json.dumps(held))
    asked = Asked()
    assert main(["server", "targets", "add", str(file)], asked) == 2
    assert not asked.words
