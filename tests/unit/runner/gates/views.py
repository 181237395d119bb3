"""A task as gates see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FakeTask:
    id: int = 1
    tier: str = "train"
    tags: Mapping[str, Any] = field(default_factory=dict)
    group: object | None = None
    attempt: int = 1
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
