"""As much of verl as is touched: packages by name, and a `Tracking` with verl's surface."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from rollscope.integrations import verl


class Tracking:
    """Keeps backends by name, and tells each of them by keyword."""

    supported_backend = ("console",)

    def __init__(
        self,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "console",
        config: Any = None,
    ) -> None:
        named = [default_backend] if isinstance(default_backend, str) else default_backend
        for name in named:
            assert name in self.supported_backend, f"{name} is not supported"
        self.logger: dict[str, Any] = {}

    def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        for name, logger in self.logger.items():
            if backend is None or name in backend:
                logger.log(data=data, step=step)


@pytest.fixture
def tracking(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Tracking]]:
    """Give the class `Tracking` of a verl that is there for one test."""
    own = type("Tracking", (Tracking,), {"__init__": Tracking.__init__})
    for name in ("verl", "verl.utils", "verl.utils.tracking"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.delitem(sys.modules, "verl.utils.rollout_trace", raising=False)
    sys.modules["verl.utils.tracking"].Tracking = own  # type: ignore[attr-defined]
    yield own
    verl.uninstall()
    sys.modules.pop("verl.utils.rollout_trace", None)
    verl.RolloutTraceConfig.reset()
