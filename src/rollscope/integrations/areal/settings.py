"""What AReaL's config objects say, read by attribute or by key, and where the files belong."""

from __future__ import annotations

import getpass
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["SessionSettings", "TracerSettings", "read_session_settings", "read_settings"]

logger = logging.getLogger("rollscope.areal")

_UNSET: Final = "???"
"""How OmegaConf writes a value that is still to be given."""
_MOST_RUN_CHARS: Final = 128
_NO_RUN_CHAR: Final = re.compile(r"[^A-Za-z0-9._+=@-]")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How sessions are written."""

    flush_threshold: int = 256
    """Ready sessions that are written without waiting for the next second."""
    max_buffer_mb: float = 64.0
    sync_writes: bool = False


@dataclass(frozen=True, slots=True)
class TracerSettings:
    """What `configure` was told."""

    folder: str
    """The trial's folder, in which the files of both tracers and the run are."""
    run: str
    enabled: bool
    save_interval: int
    profile_steps: frozenset[int]
    session: SessionSettings | None
    live: bool
    max_buffer_mb: float
    sync_writes: bool

    def file(self, kind: str, role: str | None, name: str) -> str:
        """Give the path of one of the files."""
        return os.path.join(self.folder, kind, *([role] if role else []), name)


def read_settings(config: object) -> TracerSettings:
    """Read a `PerfTracerConfig`, or anything with its names as attributes or keys.

    Raises:
        ValueError: `experiment_name`, `trial_name` or `fileroot` is missing.
        TypeError: `save_interval` is no number.
    """
    experiment, trial, root = (
        _required(config, name) for name in ("experiment_name", "trial_name", "fileroot")
    )
    root = os.path.expanduser(os.path.expandvars(root))
    sessions = _read(config, "session_tracer", None)
    max_buffer_mb = float(_read(config, "max_buffer_mb", 64.0))
    sync_writes = bool(_read(config, "sync_writes", False))
    session = None
    if sessions is not None and _read(sessions, "enabled", False):
        session = read_session_settings(sessions, max_buffer_mb, sync_writes)
    return TracerSettings(
        folder=os.path.abspath(os.path.join(root, "logs", _user(), experiment, trial)),
        run=_run_name(str(_read(config, "run_id", None) or f"{experiment}-{trial}")),
        enabled=bool(_read(config, "enabled", False)),
        save_interval=max(_read(config, "save_interval", 1), 1),
        profile_steps=_steps(_read(config, "profile_steps", None)),
        session=session,
        live=bool(_read(config, "live", False)),
        max_buffer_mb=max_buffer_mb,
        sync_writes=sync_writes,
    )


def read_session_settings(
    config: object, max_buffer_mb: float = 64.0, sync_writes: bool = False
) -> SessionSettings:
    """Read a `SessionTracerConfig`, or the like."""
    given = _read(config, "flush_threshold", 256)
    try:
        threshold = int(given)
    except (TypeError, ValueError):
        threshold = 0
    if threshold < 1:
        logger.warning("flush_threshold=%r is no number from 1 on; 1 is used", given)
        threshold = 1
    return SessionSettings(
        threshold,
        float(_read(config, "max_buffer_mb", max_buffer_mb)),
        bool(_read(config, "sync_writes", sync_writes)),
    )


def _read(config: object, name: str, default: Any) -> Any:  # noqa: ANN401  (of any type)
    try:
        if isinstance(config, Mapping):
            value = config.get(name, default)
        else:
            value = getattr(config, name, default)
    except Exception:  # a config library says "missing" in its own way
        return default
    return default if isinstance(value, str) and value == _UNSET else value


def _required(config: object, name: str) -> str:
    value = _read(config, name, None)
    if value is None or not str(value):
        raise ValueError(f"the tracer's config needs {name}")
    return str(value)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number only
        return str(os.getuid())


def _run_name(text: str) -> str:
    name = _NO_RUN_CHAR.sub("_", text).lstrip(".-")[:_MOST_RUN_CHARS]
    return name or "areal"


def _steps(given: Any) -> frozenset[int]:  # noqa: ANN401  (whatever the config holds)
    steps: set[int] = set()
    for step in given or ():
        try:
            steps.add(int(step))
        except (TypeError, ValueError):
            logger.warning("profile_steps holds %r, which is no step; it is left out", step)
    return frozenset(steps)
