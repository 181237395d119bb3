"""Ray itself, loaded when it is first needed."""

from __future__ import annotations

from typing import Any

from rollscope.errors import MissingExtra

__all__ = ["lasts", "need_ray"]


def need_ray() -> Any:  # noqa: ANN401  (a module that brings no useful types)
    """Give Ray.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import ray
        import ray.cloudpickle
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra(
            "running tasks on Ray needs it to be installed: pip install 'rollscope[ray]'"
        ) from error
    return ray


def lasts(error: Exception) -> bool:
    """Say whether a call of an actor failed for a reason that will not pass."""
    return not isinstance(error, need_ray().exceptions.ActorUnavailableError)
