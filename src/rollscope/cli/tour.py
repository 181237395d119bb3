"""The demo's tour: the commands that answer the usual questions, run on what was just recorded."""

import sys
from pathlib import Path
from typing import Final

from rollscope.cli.reading import own_command

__all__ = ["show_around", "tell_of_report", "write_report"]

_STOPS = (
    ("How long did steps take, and why?", ("steps",)),
    ("Which rollouts are stuck right now?", ("stuck", "--stacks")),
    ("Where does the time go?", ("hotspots", "--scope", "all")),
)
_ROADS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("view", (), "all of it in a browser"),
    ("top", (), "the same in this terminal"),
    ("sessions", ("--sort=-ran",), "the slowest sessions"),
    ("show", ("product/8#2",), "one of them, turn by turn"),
    ("phases", ("--by", "detail"), "tools and rewards at p50, p95, p99"),
    ("doctor", (), "whether the data can be trusted"),
    ("sql", (), "anything"),
)
_REPORTED: Final = 10


def show_around(run: Path) -> None:
    """Ask a run the usual questions, from its files alone, and say how to go on."""
    from rollscope.cli.main import main  # it knows the demo, and the demo it
    from rollscope.screens.hints import Hints

    ask = Hints(run=str(run), command=own_command())
    for question, words in _STOPS:
        print(f"\n{question}\n$ {ask.line(*words)}\n")
        sys.stdout.flush()
        main([*words, str(run)])
    print("\nAsk on:")
    lines = [(ask.line(verb, *rest), what) for verb, rest, what in _ROADS]
    longest = max(len(line) for line, _ in lines)
    for line, what in lines:
        print(f"  {line:<{longest}}  {what}")


def write_report(run: Path, steps: int) -> None:
    """Write the last steps of so many into one file."""
    from rollscope.cli.main import main

    print("\nWriting the last steps into one file, for a ticket.", flush=True)
    scope = f"{max(steps - _REPORTED, 0)}-{steps - 1}"
    main(["report", str(run), "-o", str(_report_of(run)), "--scope", scope])


def tell_of_report(run: Path) -> None:
    """Say what is left of the demo, and how to look at it again."""
    from rollscope.screens.hints import Hints

    again = Hints(run=str(run), command=own_command()).line("view")
    print(f"\nThe run is in {run}, the report in {_report_of(run)}. Look again with: {again}")


def _report_of(run: Path) -> Path:
    return run.with_suffix(".html")
