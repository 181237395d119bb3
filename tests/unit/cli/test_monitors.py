from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest

from rollscope.cli.monitors import add_monitor_arguments, monitor_settings
from rollscope.server.monitors import Monitors


@pytest.fixture
def parser() -> ArgumentParser:
    """Give the options as `rollscope view` has them."""
    made = ArgumentParser()
    made.add_argument("--token-file", type=Path)
    add_monitor_arguments(made)
    return made


def test_addresses_and_the_place_of_the_token_are_read(parser: ArgumentParser) -> None:
    given = ["--grafana-url", "http://g:3000/", "--tempo-url", "http://t", "--token-file", "token"]
    args = parser.parse_args(given)
    assert monitor_settings(args) == Monitors("http://g:3000", "http://t", Path("token").absolute())
    assert monitor_settings(parser.parse_args([])) == Monitors()


def test_what_is_no_address_is_refused_in_a_sentence(
    parser: ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.parse_args(["--grafana-url", "javascript:alert(1)"])
    assert "is no http:// or https:// address" in capsys.readouterr().err
