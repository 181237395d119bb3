"""Standing around the one call by which verifiers runs an episode, `Env.run_episode`."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import MissingExtra
from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.integrations.verifiers.episodes import OpenEpisode
from rollscope.integrations.verifiers.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["install", "uninstall", "watch"]

_MARK: Final = "_rollscope_original"
_PLACE: Final = "the verifiers integration"
_NEEDED: Final = ("on_trace", "on_discard")
_tasks = Tasks()


def install() -> None:
    """Record every episode of every environment of this process, from now on.

    Raises:
        MissingExtra: verifiers is not installed.
        RuntimeError: It is too old to be watched.
    """
    owner = _env_class()
    if not hasattr(owner.run_episode, _MARK):
        owner.run_episode = _around(owner.run_episode)


def uninstall() -> None:
    """Undo `install`; episodes that go on are recorded to their end."""
    owner = _env_class()
    owner.run_episode = getattr(owner.run_episode, _MARK, owner.run_episode)


def watch(env: Any) -> Any:  # noqa: ANN401  (an `Env`, given back as it is)
    """Record every episode of one environment.

    Returns:
        The environment.

    Raises:
        RuntimeError: It is of a verifiers that is too old to be watched.
    """
    if not hasattr(env.run_episode, _MARK):
        around = _around(type(env).run_episode)
        env.run_episode = functools.partial(around, env)
        setattr(env.run_episode, _MARK, around)
    return env


def _env_class() -> Any:  # noqa: ANN401
    try:
        return importlib.import_module("verifiers.v1").Env
    except (ImportError, AttributeError) as error:
        raise MissingExtra(
            "verifiers 0.4 is not installed: pip install 'verifiers>=0.4'"
        ) from error


def _around(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    names = inspect.signature(original).parameters
    if not all(name in names for name in _NEEDED):
        raise RuntimeError(
            "this verifiers does not tell of its traces while they grow; 0.4 or newer does"
        )

    @functools.wraps(original)
    async def run_episode(env: Any, task: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        recorder = default._tracer._recorder
        opened: OpenEpisode | None = None
        if recorder is not None:
            with guarded(_PLACE):
                opened = OpenEpisode(recorder, _tasks, env, task)
        if opened is None:
            return await original(env, task, *args, **options)
        options["on_trace"] = opened.seeing(options.get("on_trace"))
        options["on_discard"] = opened.discarding(options.get("on_discard"))
        episode, error = None, None
        try:
            episode = await original(env, task, *args, **options)
        except BaseException as raised:
            error = raised
            raise
        finally:
            with guarded(_PLACE):
                opened.close(episode, error)
        return episode

    setattr(run_episode, _MARK, original)
    return run_episode
