"""Answers for programs, and the codes that commands exit with."""

import re
import sys
from typing import Any, Final

import msgspec

from rollscope.answers.encoding import encode_answer

__all__ = ["FINE", "FOUND", "print_json", "to_json"]

FINE: Final = 0
FOUND: Final = 1
"""Something is wrong with the run."""

_UNSEEN: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def to_json(answer: Any, *, indent: bool) -> str:  # noqa: ANN401  (whatever msgspec encodes)
    """Encode an answer on one line or indented; what a terminal would obey is written as escapes.

    Only text can hold such characters, and JSON itself escapes those below a blank.
    """
    data = encode_answer(answer)
    if indent:
        data = msgspec.json.format(data, indent=2)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", data.decode())


def print_json(answer: Any) -> None:  # noqa: ANN401  (whatever msgspec encodes)
    """Print an answer: indented for people, on one line for programs."""
    out = sys.stdout
    text = to_json(answer, indent=out.isatty())
    encoding = getattr(out, "encoding", None) or "utf-8"
    if not encoding.lower().replace("-", "").startswith("utf"):
        text = "".join(char if char.isascii() else _escape(char) for char in text)
    out.write(text + "\n")


def _escape(char: str) -> str:
    """Write a character as JSON does where only ASCII is allowed."""
    data = char.encode("utf-16-be")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))
