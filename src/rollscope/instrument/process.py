"""Who this process is: the header of its log."""

import os
import sys

from rollscope._version import __version__
from rollscope.config import Settings
from rollscope.instrument.rayplace import describe_ray
from rollscope.model.batch import ProcessHeader
from rollscope.model.clockline import ClockLine

__all__ = ["describe_process", "pid_namespace", "start_ticks"]


def describe_process(
    settings: Settings, anchor: ClockLine, parent: bytes | None = None
) -> ProcessHeader:
    """Describe the running process."""
    return ProcessHeader(
        host=os.uname().nodename,
        pid=os.getpid(),
        role=settings.role,
        rank=settings.rank,
        parent=parent,
        started_ns=anchor.wall_ns,
        started_mono_ns=anchor.mono_ns,
        heartbeat_s=max(settings.heartbeat_s, settings.drain_s),  # they come with drains
        python=sys.version.split()[0],
        version=__version__,
        pid_namespace=pid_namespace(),
        start_ticks=start_ticks(os.getpid()),
        **describe_ray(),
    )


def pid_namespace() -> int:
    """Give the number of the pid namespace this process lives in; 0 where there is none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def start_ticks(pid: int) -> int:
    """Give the kernel's start time of a process; 0 if there is no such process or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return 0
    # The command name may hold spaces and brackets, so count from behind its closing bracket.
    after_name = stat[stat.rindex(b")") + 2 :].split()
    if after_name[0] in (b"Z", b"X"):
        return 0  # dead, and only waiting for its parent to notice
    return int(after_name[19])
