"""Calls of metrics as they wait in the buffer: flat, `CALL` entries each, like the rows of spans.

A call is one of the codes, its name, its value and its labels. Where a step begins or ends in this
process, a mark stands between the calls: a code, the step's number, the monotonic time and the id
of its span. So each call is known to belong to a step, and pays nothing for it.
"""

from typing import Final

__all__ = [
    "CALL",
    "COUNT",
    "GAUGE",
    "LABELS",
    "NAME",
    "OBSERVE",
    "STEP_BEGUN",
    "STEP_ENDED",
    "VALUE",
]

CALL: Final = 4
"""Entries of a call: its code, and these."""
NAME, VALUE, LABELS = 1, 2, 3
COUNT, GAUGE, OBSERVE, STEP_BEGUN, STEP_ENDED = range(5)
