"""The prompt of `rollscope sql`: lines until a semicolon, history, a few words with a dot."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rollscope.cli.terminal.results import print_answer
from rollscope.errors import QueryError
from rollscope.screens.tables import Screen, clean
from rollscope.store.prompt import SHOWN, Prompt

__all__ = ["is_complete", "talk"]

_HELP: Final = """\
Queries end with a semicolon and may take several lines; Ctrl-C stops one.
Only this run can be read, and nothing can be changed.
  .views          what can be read
  .schema VIEW    the columns of a view
  .help           this
  .quit           leave (or Ctrl-D)
Ids are numbers: id_text(span_id) writes one in the digits that other commands
show, id('00000200000000c8') reads it. Times are in nanoseconds. An example:
  SELECT name, count(*) AS calls, sum(duration_ns) / 1e9 AS seconds
  FROM phases GROUP BY name;
"""
_HISTORY_LINES: Final = 2_000


def talk(prompt: Prompt, max_rows: int | None, shape: str) -> int:
    """Ask for queries and answer them until there are no more."""
    with _history():
        print("SQL over this run; end a query with ; and type .help for more.")
        while True:
            try:
                text = _read()
            except EOFError:
                print()
                return 0
            except KeyboardInterrupt:
                print()
                continue
            if text in (".quit", ".exit", ".q"):
                return 0
            _answer(prompt, text, max_rows, shape)


def _read() -> str:
    """Read one word with a dot, or lines up to a semicolon."""
    lines = [input("sql> ")]
    if lines[0].lstrip().startswith("."):
        return lines[0].strip()
    while any(line.strip() for line in lines) and not is_complete("\n".join(lines)):
        lines.append(input("...> "))
    return "\n".join(lines).strip()


def is_complete(text: str) -> bool:
    """Say whether a query has come to its semicolon, outside of quotes and comments."""
    state, place = "", 0
    last = ""
    while place < len(text):
        char, two = text[place], text[place : place + 2]
        if state == "":
            if two in ("--", "/*"):
                state, place = two, place + 2
                continue
            if char in "'\"":
                state = char
            if not char.isspace():
                last = char
        elif (state == "--" and char == "\n") or char == state:
            state = ""
        elif state == "/*" and two == "*/":
            state, place = "", place + 1
        place += 1
    return last == ";" and state in ("", "--")


def _answer(prompt: Prompt, text: str, max_rows: int | None, shape: str) -> None:
    try:
        if text.startswith("."):
            _obey(prompt, text)
            return
        prompt.refresh()
        for answer in prompt.ask(text, max_rows=max_rows):
            print_answer(answer, shape)
    except QueryError as error:
        _complain(str(error))
    except KeyboardInterrupt:
        _complain("stopped")


def _obey(prompt: Prompt, text: str) -> None:
    word, _, rest = text.partition(" ")
    name = rest.strip().rstrip(";").strip()
    if word == ".help":
        print(_HELP, end="")
    elif word in (".views", ".tables"):
        print("\n".join(SHOWN))
    elif word == ".schema" and name in SHOWN:
        for answer in prompt.ask(
            "SELECT column_name, data_type FROM duckdb_columns() "  # noqa: S608  (one of ours)
            f"WHERE table_name = '{name}' ORDER BY column_index"
        ):
            print_answer(answer, "table")
    elif word == ".schema":
        _complain(f"which view? {', '.join(SHOWN)}")
    else:
        _complain(f"there is no {word}; .help lists what there is")


def _complain(text: str) -> None:
    screen = Screen.of(sys.stderr)
    lines = "\n".join(clean(line) for line in text.split("\n"))
    print(screen.fit(lines), file=sys.stderr)


@contextmanager
def _history() -> Iterator[None]:
    """Let the arrow keys bring back what was asked before, also in earlier sessions."""
    try:
        import readline
    except ImportError:  # some Pythons are built without
        yield
        return
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = Path(base, "rollscope", "sql_history")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)
            file.chmod(0o600)
