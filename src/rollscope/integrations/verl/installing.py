"""Putting Rollscope into verl: a backend called `rollscope`, and the rollout trace."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Final

from rollscope.errors import MissingExtra
from rollscope.instrument.guard import guarded
from rollscope.integrations.verl.tracking import TrackingBackend

__all__ = ["install", "uninstall"]

_BACKEND: Final = "rollscope"
_TRACE: Final = "verl.utils.rollout_trace"
_OWN: Final = "rollscope.integrations.verl.rollouts"
_ORIGINAL: Final = "_rollscope_original"


def install() -> None:
    """Let `trainer.logger` name `rollscope`, and trace agent loops.

    It must come before the agent loops are imported, in the trainer and in every worker;
    `VERL_USE_EXTERNAL_MODULES=rollscope.integrations.verl.installed` does that.

    Raises:
        MissingExtra: verl is not installed.
        RuntimeError: verl's own rollout trace is imported already, so that agent loops use it.
    """
    try:
        tracking: Any = importlib.import_module("verl.utils.tracking").Tracking
    except ImportError as error:
        raise MissingExtra(f"verl cannot be imported ({error}): pip install verl") from error
    own = importlib.import_module(_OWN)
    if sys.modules.get(_TRACE, own) is not own:
        raise RuntimeError("verl.utils.rollout_trace is imported already; install() goes before")
    sys.modules[_TRACE] = own
    sys.modules["verl.utils"].rollout_trace = own  # type: ignore[attr-defined]  # as an import does
    _add_backend(tracking)


def uninstall() -> None:
    """Leave verl as it was, for what is imported and made from now on."""
    if sys.modules.get(_TRACE) is sys.modules.get(_OWN, object()):
        del sys.modules[_TRACE]
        with guarded("leaving verl's rollout trace"):
            del sys.modules["verl.utils"].rollout_trace
    tracking: Any = getattr(sys.modules.get("verl.utils.tracking"), "Tracking", None)
    original = getattr(getattr(tracking, "__init__", None), _ORIGINAL, None)
    if original is not None:
        tracking.__init__ = original
        tracking.supported_backend = [
            name for name in tracking.supported_backend if name != _BACKEND
        ]


def _add_backend(tracking: Any) -> None:  # noqa: ANN401  (verl's class)
    original = tracking.__init__
    if hasattr(original, _ORIGINAL):
        return

    @functools.wraps(original)
    def init(
        self: Any,  # noqa: ANN401
        project_name: object,
        experiment_name: object,
        default_backend: Any = "console",  # noqa: ANN401
        config: object = None,
        **more: Any,
    ) -> None:
        original(self, project_name, experiment_name, default_backend, config, **more)
        names = [default_backend] if isinstance(default_backend, str) else default_backend
        if _BACKEND in names:
            with guarded("adding Rollscope to verl's Tracking"):
                self.logger[_BACKEND] = TrackingBackend(project_name, experiment_name, config)

    setattr(init, _ORIGINAL, original)
    tracking.__init__ = init
    tracking.supported_backend = [*tracking.supported_backend, _BACKEND]
