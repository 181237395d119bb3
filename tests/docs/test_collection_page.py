"""What the pages on collecting say is what programs and servers say and take."""

import argparse
import re
from pathlib import Path

import pytest

from rollscope.cli.main import make_parser
from rollscope.config import COMMAND_VARIABLES, all_settings
from rollscope.instrument.sinks.collector import CollectorSink
from rollscope.server.failures import _INGEST
from tests.docs.spoken import spoken_texts
from tests.docs.walking import DOCS, blocks, pages

COLLECTION = (DOCS / "collection.md").read_text()
WIRE = (DOCS / "wire.md").read_text()

PAGES = [page for page in pages() if page.parent.name != "adr"]
"""Those that state the present."""

_ASIDE = re.compile(r"\([^)]*\)|'[^']*'|\d+|…")
"""What a message fills in: left out when it is looked for."""
_LEAST_LETTERS = 8
_OF_OTHERS = {"--enable-metrics", "--web"}


def options_of_commands(parser: argparse.ArgumentParser | None = None) -> set[str]:
    """Give every option of a command, and of the actions that some of them have."""
    found: set[str] = set()
    for action in (parser or make_parser())._actions:
        found.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found.update(*map(options_of_commands, action.choices.values()))
    return found


def test_every_message_that_is_explained_can_be_said() -> None:
    table = COLLECTION.split("| what it says | what to do |")[1].split("\n\n")[0]
    messages = re.findall(r"^\| ([^|`]+) \|", table, re.MULTILINE)
    pieces = [piece.strip(" :,").lower() for said in messages for piece in _ASIDE.split(said)]
    pieces = [piece for piece in pieces if len(piece) >= _LEAST_LETTERS]
    spoken = spoken_texts().lower()

    assert len(pieces) >= 10
    assert [piece for piece in pieces if piece not in spoken] == []


def test_every_status_of_a_refusal_is_explained() -> None:
    explained = re.findall(r"^\| (\d{3}) \|", WIRE, re.MULTILINE)

    assert {str(status) for status, _ in _INGEST.values()} <= set(explained)


@pytest.mark.parametrize(
    "name", ["collection.md", "engines.md", "otlp.md", "ray.md", "server.md", "wire.md"]
)
def test_options_that_are_named_exist(name: str) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DOCS / name).read_text()))

    assert named - options_of_commands() - _OF_OTHERS == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_variables_that_are_named_exist(page: Path) -> None:
    known = {*COMMAND_VARIABLES, *(setting.variable for setting in all_settings().values())}

    assert set(re.findall(r"\bROLLSCOPE_[A-Z_]+\b", page.read_text())) <= known


def test_the_sink_of_your_own_is_one() -> None:
    (example,) = (
        block.text for block in blocks(DOCS / "collection.md") if "class QueueSink" in block.text
    )
    names: dict[str, type[CollectorSink]] = {}
    exec(example, names)  # noqa: S102  (our own page)

    sink = names["QueueSink"]("queue://place")

    assert isinstance(sink, CollectorSink)
    assert sink.address == "queue://place"
