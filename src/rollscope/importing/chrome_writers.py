"""The writers of Chrome traces that say more than the format has words for."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from rollscope.otlp.aliases import whole_number

__all__ = ["LEAST_NS", "RAY_TASKS", "Writer", "Written", "is_kept_always", "writer_of"]

RAY_TASKS: Final = 10_000
"""Ray lists no more of them."""
_OVERFLOW: Final = "viztracer's buffer ran over: the beginning is missing"
_KEPT: Final = frozenset(("user_annotation", "gpu_user_annotation"))
"""What the program itself named in a trace of torch's profiler."""


class Writer(StrEnum):
    """Who wrote a file."""

    RAY = "ray"
    TORCH = "torch"
    ROLLSCOPE = "rollscope"
    OTHER = "other"


LEAST_NS: Final = {Writer.TORCH: 100_000}
"""Spans that are shorter are left out unless all are asked for: a profiler of operators gives
thousands of them a second, and a page of rollouts has no use for any."""


class Written(NamedTuple):
    """Who wrote a file, and what it says of itself."""

    writer: Writer
    rank: int | None = None
    base_ns: int | None = None
    """Where its zero is, after 1970."""
    note: str = ""
    """What the user should know of the file."""


def writer_of(outline: Mapping[str, Any], *, is_ray: bool) -> Written:
    """Say who wrote a file, by what stands around its events.

    Args:
        outline: The members of the document beside its events.
        is_ray: Whether the events look like Ray's.
    """
    base_ns = _base_of(outline)
    other = outline.get("otherData")
    if isinstance(other, dict) and other.get("writer") == "rollscope":
        return Written(Writer.ROLLSCOPE, None, base_ns)
    if "schemaVersion" in outline and not outline.keys().isdisjoint(
        ("deviceProperties", "distributedInfo", "baseTimeNanoseconds")
    ):
        about = outline.get("distributedInfo")
        rank = whole_number(about.get("rank")) if isinstance(about, dict) else None
        return Written(Writer.TORCH, rank, base_ns)
    viztracer = outline.get("viztracer_metadata")
    if isinstance(viztracer, dict):
        note = _OVERFLOW if viztracer.get("overflow") is True else ""
        return Written(Writer.OTHER, None, base_ns or _base_of(viztracer), note)
    return Written(Writer.RAY if is_ray else Writer.OTHER, None, base_ns)


def _base_of(about: Mapping[str, Any]) -> int | None:
    base_ns = whole_number(about.get("baseTimeNanoseconds"))
    return base_ns if base_ns is not None and 0 < base_ns < 2**61 else None


def is_kept_always(category: str) -> bool:
    """Say whether even a short span of torch's profiler is of use."""
    return category in _KEPT
