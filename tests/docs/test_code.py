"""The code that pages show runs, and what it names exists."""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollscope
from rollscope.cli.main import make_parser
from tests.docs.walking import DOCS, ROOT, Block, blocks, commands, pages

WHOLE = [ROOT / "README.md", *sorted(DOCS.glob("tutorial*.md"))]
"""Pages whose commands ask the runs that their blocks record."""
RUN = [*WHOLE, DOCS / "analysis.md", DOCS / "payloads.md", *sorted(DOCS.glob("howto/*.md"))]
"""Pages whose blocks make a whole; elsewhere they stand for a part of the reader's program."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_of(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


WITH_CODE = [page for page in pages() if code_of(page)]
RUNNING = [page for page in RUN if any(block.is_run for block in code_of(page))]


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[Path, subprocess.Popen[str]]]:
    """Start all pages at once: most of their time is spent asleep, as a reader would see it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")
    }
    started = {}
    for page in RUNNING:
        options = ["--commands"] if page in WHOLE else []
        started[page] = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "docs" / "run_page.py", page, *options],
            cwd=tmp_path_factory.mktemp(page.stem),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_every_block_runs(page: Path, running: dict[Path, subprocess.Popen[str]]) -> None:
    said, _ = running[page].communicate(timeout=120)

    assert running[page].returncode == 0, said


def test_what_is_run_are_readme_and_tutorial_at_least() -> None:
    assert {ROOT / "README.md", DOCS / "tutorial.md", DOCS / "analysis.md"} <= set(RUNNING)


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_every_name_of_ours_exists(page: Path) -> None:
    for block in code_of(page):
        tree = compile(
            block.text, name_of(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(module)) if module.startswith("rollscope"):
                    for alias in node.names:
                        assert is_there(module, alias.name), f"line {block.line}: {alias.name}"
                case ast.Import():
                    for alias in node.names:
                        assert not alias.name.startswith("rollscope") or importlib.import_module(
                            alias.name
                        )
                case ast.Attribute(value=ast.Name(id="rs"), attr=name):
                    assert name in rollscope.__all__, f"line {block.line}: rs.{name}"


def is_there(module: str, name: str) -> bool:
    found = importlib.import_module(module)
    return hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_command_is_one(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(page):
        for arguments in commands(block):
            refused = refusal(arguments)
            assert not refused, f"line {block.line}: {arguments}: {capsys.readouterr().err}"


def refusal(arguments: list[str]) -> str | int | None:
    try:
        make_parser().parse_args(arguments)
    except SystemExit as ended:
        return ended.code
    return None
