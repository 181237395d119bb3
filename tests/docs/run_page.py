"""Do in order what a page shows: its Python, and if asked for its calls of our command.

    python run_page.py PAGE [--commands]

It runs in the current folder. Errors name the line of the page.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollscope.cli.main import main
from tests.docs.walking import Block, blocks, commands, programs

STAY = {"demo", "server", "top", "view"}
"""Commands that go on until somebody ends them."""


def run_code(block: Block, page: Path, names: dict[str, object]) -> None:
    padding = "\n" * (block.line - 1)
    exec(compile(padding + block.text, page, "exec"), names)  # noqa: S102  (our own page)


def run_commands(block: Block, page: Path) -> None:
    if programs(block) - {"python", "rollscope"}:
        return  # it is the log of another program that stands there
    for arguments in commands(block):
        if arguments[0] in STAY or "--watch" in arguments:
            continue
        code = main(arguments)
        if code:
            sys.exit(f"{page.name}, line {block.line}: {arguments} ends with {code}")


def run_page(page: Path, *, has_commands: bool) -> None:
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(page)}
    for block in blocks(page):
        if not block.is_run:
            continue
        if block.language == "python":
            run_code(block, page, names)
        elif has_commands:
            run_commands(block, page)


if __name__ == "__main__":
    os.environ["PAGER"] = "cat"
    run_page(Path(sys.argv[1]), has_commands="--commands" in sys.argv)
