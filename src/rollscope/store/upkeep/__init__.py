"""Looking after the files of a run: sealing, merging, removing what is old, dropping logs.

Readers and other caretakers may be at work on the same run. New files are written first and then
published with one manifest; if another was faster, what still fits its manifest is published once
more and the rest thrown away. Either way every row is in exactly one segment.
"""

from typing import Final

__all__ = ["TRIES"]

TRIES: Final = 3
"""How often others may be faster before a caretaker gives up."""
