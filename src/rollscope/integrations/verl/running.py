"""Beginning to record in a process of verl: one run for the trainer and all its workers."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded

__all__ = ["begin"]

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._+=@-]+")


def begin(project: object, experiment: object, role: str) -> bool:
    """Begin to record, unless it is done; say whether it was begun here.

    Processes with the same project and experiment share a run. `ROLLSCOPE_RUN` and the other
    variables win.
    """
    if default.enabled():
        return False
    with guarded("beginning to record for verl"):
        names = [str(name) for name in (project, experiment) if name]
        settings: dict[str, Any] = {}
        if not os.environ.get("ROLLSCOPE_RUN") and names:
            settings["run"] = _UNFIT.sub("_", "-".join(names)).lstrip(".-")[:128] or None
        if not os.environ.get("ROLLSCOPE_ROLE"):
            settings["role"] = role
        if not os.environ.get("ROLLSCOPE_SINK") and _is_on_ray():
            settings["sink"] = "ray"
        default.init(**settings)
    return default.enabled()


def _is_on_ray() -> bool:
    ray: Any = sys.modules.get("ray")
    with suppress(Exception):  # Ray is the host's, and never loaded by us
        return ray is not None and bool(ray.is_initialized())
    return False
