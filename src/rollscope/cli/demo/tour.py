"""The demo's tour: the commands that answer the usual questions, run on what was just recorded."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

__all__ = ["show_around"]

_STOPS = (
    ("Why was the last step slow?", ("steps",)),
    ("Which rollouts are stuck right now?", ("stuck", "--stacks")),
    ("Where does the time go?", ("hotspots", "--scope", "all")),
)
_ROADS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("view", (), "all of it in a browser"),
    ("top", (), "the same in this terminal"),
    ("report", ("-o", "demo.html"), "one file for a ticket"),
    ("sessions", ("--sort=-ran",), "the slowest sessions"),
    ("show", ("browse/1#2",), "the one that hangs"),
    ("phases", ("--by", "detail"), "tools and rewards at p50, p95, p99"),
    ("doctor", (), "whether the data can be trusted"),
    ("sql", (), "anything"),
)


def show_around(run: Path) -> None:
    """Ask a run the usual questions, from its files alone, and say how to go on."""
    if find_spec("duckdb") is None:
        print(f"\nRecorded in {run}. To ask it questions: pip install 'rollscope[server]'")
        return
    from rollscope.cli.main import main  # it knows the demo, and the demo it

    for question, words in _STOPS:
        print(f"\n{question}\n$ {_line(*words, str(run))}\n")
        sys.stdout.flush()
        main([*words, str(run)])
    print("\nAsk on:")
    lines = [(_line(verb, str(run), *rest), what) for verb, rest, what in _ROADS]
    longest = max(len(line) for line, _ in lines)
    for line, what in lines:
        print(f"  {line:<{longest}}  {what}")


def _line(*words: str) -> str:
    """Write a command as it can be typed: the environment of `make demo` is not on the path."""
    command = "rollscope" if which("rollscope") else sys.argv[0]
    return shlex.join((command, *words))
