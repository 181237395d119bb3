"""Span paths: the names from the nearest step, task, session or root down to a span."""

import numpy as np
import numpy.typing as npt

from rollscope.store.densecodes import number_densely

__all__ = ["PathTable"]

Codes = npt.NDArray[np.int32]


class PathTable:
    """Numbers the paths of a run; 0 is the path of nothing."""

    def __init__(self) -> None:
        self.paths: list[str] = [""]
        self._codes: dict[tuple[int, str], int] = {}
        self._by_text: dict[str, int] = {"": 0}

    def below(self, parent: int, name: str) -> int:
        """Give the code of the path that leads from a parent's path to a name."""
        code = self._codes.get((parent, name))
        if code is None:
            text = f"{self.paths[parent]} / {name}" if parent else name
            code = self._codes[parent, name] = self.code_of(text)
        return code

    def code_of(self, text: str) -> int:
        """Give the code of a whole path."""
        code = self._by_text.get(text)
        if code is None:
            code = self._by_text[text] = len(self.paths)
            self.paths.append(text)
        return code

    def resolve(
        self,
        names: list[str],
        name_codes: Codes,
        is_root: npt.NDArray[np.bool_],
        parent_rows: Codes,
        parent_paths: Codes,
    ) -> tuple[Codes, Codes]:
        """Find the paths of rows, parents before children.

        Args:
            names: The names that rows refer to.
            name_codes: Name of each row.
            is_root: Rows at which a path begins anew.
            parent_rows: Row of each row's parent, -1 if it is not among them.
            parent_paths: Path of the parent where it is known from elsewhere, else 0.

        Returns:
            The path of each row, and that of its parent.
        """
        size = len(name_codes)
        paths = np.zeros(size, np.int32)
        above = parent_paths.copy()
        pending = np.arange(size)
        is_known = np.zeros(size, bool)
        while pending.size:
            rows = parent_rows[pending]
            ready = (rows < 0) | is_known[np.maximum(rows, 0)]
            if not ready.any():
                # Spans that are their own ancestors: no process of ours writes that.
                ready[:] = True
            now, rows = pending[ready], rows[ready]
            has_row = rows >= 0
            above[now[has_row]] = paths[rows[has_row]]
            start = np.where(is_root[now], 0, above[now])
            keys = start.astype(np.int64) * len(names) + name_codes[now]
            used, which = number_densely(keys, len(self.paths) * len(names))
            codes = [
                self.below(key // len(names), names[key % len(names)]) for key in used.tolist()
            ]
            paths[now] = np.array(codes, np.int32)[which]
            is_known[now] = True
            pending = pending[~ready]
        return paths, above
