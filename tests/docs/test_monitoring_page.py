"""What the page on the monitoring stack says is what the commands take and say."""

from __future__ import annotations

import re

from rollscope.config import COMMAND_VARIABLES
from rollscope.stack.programs import PROGRAMS
from tests.docs.spoken import spoken_texts
from tests.docs.test_collection_page import options_of_commands
from tests.docs.walking import DOCS

PAGE = (DOCS / "monitoring.md").read_text()
_OF_RL_INSIGHT = {"--attach-logs", "--auto-port", "--config", "--log-dir", "--extra-dashboard-dir"}
_FILLED_IN = re.compile(r"…|taken by|--\S+|\d[\d.]*|Prometheus")
_LEAST_LETTERS = 8


def test_options_that_are_named_exist() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert "--alertmanager-config" in named
    assert named - options_of_commands() - _OF_RL_INSIGHT == set()


def test_variables_and_least_versions_are_those_of_the_programs() -> None:
    for program in PROGRAMS.values():
        assert f"`{program.variable}`" in PAGE
        assert program.variable in COMMAND_VARIABLES
        assert f"{program.title} {'.'.join(map(str, program.least))}" in PAGE


def test_messages_that_are_explained_can_be_said() -> None:
    table = PAGE.split("| what it says | what to do |")[1]
    messages = re.findall(r"^\| ([^|`]+) \|", table, re.MULTILINE)
    pieces = [piece.strip(" :,") for said in messages for piece in _FILLED_IN.split(said)]
    pieces = [piece for piece in pieces if len(piece) >= _LEAST_LETTERS]
    spoken = spoken_texts()
    assert len(pieces) >= 6
    assert [piece for piece in pieces if piece not in spoken] == []
