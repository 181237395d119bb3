"""Docstrings in Google's style as Markdown."""

import re
from typing import Final

__all__ = ["first_sentence", "rendered"]

_SECTION: Final = re.compile(r"^(Args|Raises|Returns|Yields|Attributes|Example|Examples):$")
_ENTRY: Final = re.compile(r"^    (\*{0,2}[\w.]+): (.*)$")
_TITLES: Final = {"Args": "Parameters"}


def first_sentence(doc: str) -> str:
    """Give the paragraph that a docstring begins with."""
    return " ".join(doc.split("\n\n")[0].split())


def rendered(doc: str) -> list[str]:
    """Give the lines of a docstring; entries of a section become a list."""
    lines: list[str] = []
    in_section = False
    for line in doc.splitlines():
        if section := _SECTION.match(line):
            lines += [f"**{_TITLES.get(section[1], section[1])}**", ""]
            in_section = True
        elif in_section and (entry := _ENTRY.match(line)):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif in_section and line.startswith("        "):
            lines.append(f"  {line.strip()}")
        elif in_section and line.startswith("    "):
            lines.append(line.strip())
        else:
            in_section = in_section and not line
            lines.append(line)
    return lines
