"""Whether a run that a process begins to record was recorded before, by a start that is over.

A job that resumes wants that; a program that is only run again does not, and would not notice.
"""

import os
import time
from typing import Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.process import start_ticks
from rollscope.model.batch import ProcessHeader
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX

__all__ = ["tell_of_earlier"]

_MOST_LOGS: Final = 200
"""A job of so many processes is not looked at: it would take long on a shared file system."""
_SURELY_OVER_S: Final = 15.0
"""How long the log of another host has to rest; a process that lives writes every second."""


def tell_of_earlier(directory: str, prefix: str, header: ProcessHeader) -> None:
    """Say once that a run goes on which others have left.

    Args:
        directory: The run's.
        prefix: What names of logs of this host begin with.
        header: Who begins to record; a child goes on where its parent was, which is no news.
    """
    if header.parent is not None:
        return
    last_s = _left_at(os.path.join(directory, LOG_DIR), prefix)
    # What was written since this process began is of its own children: it may open its log late.
    if last_s is not None and last_s * 1e9 < header.started_ns:
        tell_once(
            f"earlier:{directory}",
            "The run %s was recorded before, until %s; this process goes on in it. "
            "Another name, or none, begins a new run",
            directory,
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(last_s)),
        )


def _left_at(folder: str, prefix: str) -> float | None:
    """Say when the last process of a run left it; None if there is none, or one still lives."""
    try:
        with os.scandir(folder) as entries:
            logs = [entry for entry in entries if entry.name.endswith(LOG_SUFFIX)]
            times = [entry.stat().st_mtime for entry in logs[:_MOST_LOGS]]
    except OSError:
        return None
    if not logs or len(logs) > _MOST_LOGS:
        return None
    now_s = time.time()
    for entry, time_s in zip(logs, times, strict=True):
        pid = entry.name.removeprefix(prefix).partition("-")[0]
        is_here = entry.name.startswith(prefix) and pid.isdecimal()
        if start_ticks(int(pid)) if is_here else now_s - time_s < _SURELY_OVER_S:
            return None
    return max(times)
