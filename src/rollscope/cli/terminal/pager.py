"""Printing what may be taller than the terminal: its first screen has to stay in view."""

import os
import shlex
import shutil
import subprocess
import sys
from typing import Final

__all__ = ["print_text"]

_PAGER: Final = "less"
_LESS: Final = "FRX"
"""End at once if all fits, let colours through, and leave the text standing."""


def print_text(text: str) -> None:
    """Print a text; through `$PAGER`, or less, where it does not fit the terminal."""
    height = _height()
    if height is None or text.count("\n") < height or not _page(text):
        sys.stdout.write(text)


def _height() -> int | None:
    out = sys.stdout
    if not out.isatty() or not sys.stdin.isatty():
        return None
    try:
        return os.get_terminal_size(out.fileno()).lines or None
    except (OSError, ValueError):
        return None


def _page(text: str) -> bool:
    words = shlex.split(os.environ.get("PAGER", _PAGER))
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return False
    environment = {"LESS": _LESS, "LESSCHARSET": "utf-8", **os.environ}
    sys.stdout.flush()
    pager = subprocess.Popen(  # noqa: S603  (the user's own choice)
        words, stdin=subprocess.PIPE, env=environment
    )
    try:
        pager.communicate(text.encode(errors="backslashreplace"))
    except KeyboardInterrupt:  # the pager has it too, and decides what it means
        pager.wait()
    return True
