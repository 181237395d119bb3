"""The blocks of data of a report, and the first of them, which says what the others hold."""

import gzip
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import msgspec

from rollscope.answers.questions import QUESTIONS
from rollscope.reports.document import data_element
from rollscope.reports.drawing import Drawing

__all__ = ["Blocks"]

INDEX_BLOCK: Final = "rollscope-report"
_LEVEL: Final = 6
"""Level 9 takes many times longer for 2 % less."""


class Blocks:
    """Writes blocks one after the other, and remembers what is in them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._answers: dict[str, list[str]] = {}
        self._frames: dict[str, str] = {}
        self._tiles: list[dict[str, Any]] = []
        self.sizes: Final[dict[str, int]] = {}
        """Bytes of each block in the file."""

    def add_answers(self, name: str, answers: Iterable[tuple[str, Any]]) -> None:
        """Write answers that are likely to be wanted together."""
        found = dict(answers)
        if found:
            self._answers[f"-{name}"] = list(found)
            self._write(f"-{name}", msgspec.json.encode(list(found.values())))

    def add_sessions(self, table: Any) -> None:  # noqa: ANN401  (compact JSON)
        """Write the list of sessions."""
        self._write("-sessions", msgspec.json.encode(table))

    def add_drawing(self, drawing: Drawing) -> None:
        """Write a picture of the timeline."""
        if drawing.is_tile:
            name = f"-tile-{drawing.by}-{len(self._tiles)}"
            window = {"t0": drawing.t0_ns, "t1": drawing.t1_ns}
            self._tiles.append({"by": drawing.by, "block": name, **window})
        else:
            name = f"-frame-{drawing.by}"
            self._frames[drawing.by] = name
        self._write(name, drawing.content)

    def finish(self, **facts: Any) -> None:
        """Write the first block, with what is to be known of the report."""
        asked = {key.partition("?")[0] for keys in self._answers.values() for key in keys}
        index = {
            **facts,
            "answers": self._answers,
            "defaults": {name: _defaults(name) for name in sorted(asked | {"sessions"})},
            "frames": self._frames,
            "tiles": self._tiles,
        }
        self._write("", msgspec.json.encode(index))

    def _write(self, name: str, content: bytes) -> None:
        packed = gzip.compress(content, _LEVEL, mtime=0)
        before = self._file.tell()
        for part in data_element(f"{INDEX_BLOCK}{name}", packed):
            self._file.write(part)
        self.sizes[name.removeprefix("-") or "index"] = self._file.tell() - before


def _defaults(name: str) -> dict[str, str]:
    return {one.name: one.default for one in QUESTIONS[name].parameters if one.default}
