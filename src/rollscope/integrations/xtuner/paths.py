"""The names of the spans around a region, which travel with the context as baggage."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PATH_KEY", "path_header", "path_in"]

PATH_KEY: Final = "xtuner.span_name_path"


@lru_cache(maxsize=1024)
def path_header(path: tuple[str, ...]) -> str:
    """Write the names of the spans around as a member of a baggage header."""
    return f"{PATH_KEY}={quote(json.dumps(path, separators=(',', ':')), safe='')}"


def path_in(carrier: Mapping[str, Any]) -> tuple[str, ...]:
    """Read what `path_header` wrote; nothing if it is not there or no list of names."""
    for member in str(carrier.get("baggage", "")).split(","):
        key, _, value = member.strip().partition("=")
        if key == PATH_KEY:
            try:
                names = json.loads(unquote(value))
            except (ValueError, RecursionError):
                return ()
            return tuple(str(name) for name in names) if isinstance(names, list) else ()
    return ()
