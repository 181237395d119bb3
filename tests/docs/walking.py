"""Pages as a reader goes through them: their code blocks, in order, and what is said about each.

A block that is not meant to run has a comment on the line before it, with the reason:

    <!-- not run: needs a GPU -->
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"

_FENCE: Final = re.compile(r"^( *)(```+)(\w*)\s*$")
_NOT_RUN: Final = re.compile(r"^ *<!-- not run: \S.* -->$")
_SHELL: Final = ("", "text", "sh", "bash", "console")
_PROMPT: Final = re.compile(r"^\w*\$ ", re.MULTILINE)
_COMMAND: Final = re.compile(
    r"""
    ^rollscope[ ](
        (?: "(?:\\.|[^"\\])*" | '[^']*' | [ ]{0,2}[^\s"'\#|<>&;] | (?<=\S)\# | [ ](?=["']) )*
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Ends at a pipe, a comment, or a remark in a second column."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    line: int
    """Of its first line of code, from 1."""
    language: str
    text: str
    is_run: bool = True


def pages() -> list[Path]:
    """Give every page that is written by hand."""
    written = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return sorted(page for page in written if DOCS / "reference" not in page.parents)


def blocks(page: Path) -> Iterator[Block]:
    """Give the fenced blocks of a page."""
    lines = page.read_text().splitlines()
    opened: tuple[int, str, str, str] | None = None
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened = (number, fence[1], fence[2], fence[3])
        elif opened and fence and fence[2] == opened[2] and not fence[3]:
            first, indent, _, language = opened
            body = [one.removeprefix(indent) for one in lines[first : number - 1]]
            before = [one for one in lines[: first - 1] if one.strip()][-1:]
            is_run = not (before and _NOT_RUN.match(before[0]))
            yield Block(first + 1, language, "\n".join(body) + "\n", is_run)
            opened = None
    assert opened is None, f"{page.name}: the block at line {opened} does not end"


def commands(block: Block) -> list[list[str]]:
    """Give the calls of our command that a block shows, as arguments; none if it is other code."""
    if block.language not in _SHELL:
        return []
    text = block.text
    if _PROMPT.search(text):  # then a line without one is what a program says
        text = _PROMPT.sub("", re.sub(r"^rollscope", "", text, flags=re.MULTILINE))
    elif not text.startswith("rollscope "):
        return []
    return [shlex.split(found[1]) for found in _COMMAND.finditer(text)]


def programs(block: Block) -> set[str]:
    """Give the programs that a block calls at a prompt."""
    lines = block.text.splitlines()
    return {line.split()[1] for line in lines if line.startswith("$ ") and line[2:].strip()}
