"""Short names of sessions: the last four bytes of an id, where that names one session only.

The whole id of a session is random in its upper half, so it would take twice the place. A short
one is written with zeros in front, so that it is read wherever an id is.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rollscope.model.refs import span_hex

__all__ = ["ShortIds"]

_LOW: Final = 0xFFFFFFFF


class ShortIds:
    """Gives sessions their names in a report."""

    def __init__(self, ids: Iterable[int], *, is_whole: bool = False) -> None:
        """Find out which sessions can have short names.

        Args:
            ids: Every session of the run.
            is_whole: None can.
        """
        known = set(ids)
        taken = Counter(one & _LOW for one in known)
        self._short: dict[int, int] = {}
        if not is_whole:
            self._short = {
                one: one & _LOW for one in known if taken[one & _LOW] == 1 and one & _LOW
            }
        self._texts = {span_hex(one): span_hex(short) for one, short in self._short.items()}
        self._wholes = {short: one for one, short in self._texts.items()}

    def name(self, session_id: int) -> str:
        """Give what a session is called in the report."""
        return span_hex(self._short.get(session_id, session_id))

    def whole(self, name: str) -> str:
        """Give the id of a session that is called so in the report."""
        return self._wholes.get(name, name)

    def rename(self, value: Any) -> Any:  # noqa: ANN401  (any part of an answer)
        """Give an answer in which sessions have these names."""
        if not self._texts:
            return value
        if isinstance(value, str):
            return self._texts.get(value, value) if len(value) == 16 else value
        if isinstance(value, dict):
            return {key: self.rename(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.rename(item) for item in value]
        return value

    def rename_halves(self, halves: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Do the same with ids as a view frame has them: low half, high half."""
        renamed = halves.copy()
        whole = halves.view(np.uint64) if halves.flags.c_contiguous else halves.copy().view("u8")
        is_short = np.fromiter((int(one) in self._short for one in whole), bool, len(whole))
        renamed[1::2][is_short] = 0
        return renamed
