"""What a report writes and its page reads: an answer in few bytes, and a nested view frame.

Run as a module, it writes the golden files anew: `python -m tests.unit.reports.golden_report`.
"""

import json
from pathlib import Path
from typing import Any

from rollscope.reports.compact import Compactor, KnownSessions
from rollscope.reports.nesting import nest_frame
from rollscope.timeline import decode_frame

__all__ = ["GOLDEN", "make_compact", "make_nested"]

GOLDEN = Path(__file__).parents[2] / "golden" / "report"
_RAW = GOLDEN.parent / "view-frames" / "raw.rsv"
_IDS = [f"{number:016x}" for number in (7, 11, 5, 300, 2)]


def make_compact() -> dict[str, Any]:
    """Give lines of sessions and an answer that refers to them, plain and as they are written."""
    lines: list[dict[str, Any]] = [
        {"row": {"span_id": one, "start_ns": 1_790_000_000_000_000_000 + 10 * at}, "ran_ns": at * 7}
        for at, one in enumerate(_IDS)
    ]
    answer = {
        "text": "</script>",
        "few": [1, 2],
        "steps": [10, 11, 12, 13, 15],
        "same": [True] * 5,
        "words": ["a", "b", "a", "a", "b", "a"],
        "floats": [0.5, 1, 2, 3],
        "mixed": [None, 3, 4, None, None, 9],
        "nested": [[1], [], [2, 3], [{"deep": None}]],
        "phases": [{"generate": 5, "tool": 1}, {"generate": 5}, {}, {"tool": 3, "__proto__": 2}],
        "rows": [
            {"session_id": one, "start_ns": lines[at]["row"]["start_ns"], "charge": 3 - at}
            for at, one in enumerate(_IDS)
        ],
        "points": {"sessions": _IDS[::-1], "ran_ns": [28, 21, 14, 7, 0], "of": 5},
    }
    known = KnownSessions(_IDS, lines)
    return {"lines": lines, "answer": answer, "written": Compactor(known).write(answer)}


def make_nested() -> bytes:
    """Give the golden raw frame as a report has it."""
    raw = _RAW.read_bytes()
    return nest_frame(raw, decode_frame(raw))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / "compact.json").write_text(json.dumps(make_compact(), indent=1) + "\n")
    (GOLDEN / "nested.bin").write_bytes(make_nested())
