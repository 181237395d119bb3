"""A server that starts without what it does not use.

Arrow loads pandas wherever that is installed, to recognise its tables: a fifth of the time that the
server takes to start, and no table of ours is one. It looks once, and can do without.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Final

__all__ = ["without_pandas"]

_LEFT_OUT: Final = "pandas"


class _LeavesOut(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> None:
        if name == _LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let what is loaded in the block find no pandas, unless that is loaded already."""
    finder = _LeavesOut()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
