"""Whether the process behind a log still lives, as far as a reader can tell."""

import os

from rollscope.instrument.process import pid_namespace, start_ticks
from rollscope.model.batch import ProcessHeader
from rollscope.model.records import ProcessRecord

__all__ = ["is_alive"]

_MISSED_HEARTBEATS = 3
_LEAST_SILENCE_S = 15.0


def is_alive(process: ProcessRecord | ProcessHeader, last_seen_ns: int, now_ns: int) -> bool:
    """Say whether a process that has not closed its log is still there.

    On the same host the kernel knows, and tells a reused pid apart by its start time. From
    elsewhere only silence can tell: three missed heart-beats, and at least 15 seconds, since the
    clocks of two hosts differ.
    """
    if _shares_pids(process):
        return start_ticks(process.pid) == process.start_ticks
    silence_s = max(_MISSED_HEARTBEATS * process.heartbeat_s, _LEAST_SILENCE_S)
    return now_ns - last_seen_ns < silence_s * 1e9


def _shares_pids(process: ProcessRecord | ProcessHeader) -> bool:
    return (
        bool(process.start_ticks)
        and process.host == os.uname().nodename
        and process.pid_namespace == pid_namespace()
    )
