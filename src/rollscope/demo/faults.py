"""What can be made to go wrong in the demo, for the page to find."""

import os
import time
from enum import StrEnum
from typing import Any

import rollscope as rs

__all__ = ["Fault", "SkewedClock", "join_from_another_host"]


class Fault(StrEnum):
    """Something that goes wrong."""

    SLOW_REWARD = "slow-reward"
    STUCK_TOOL = "stuck-tool"
    DEAD_REPLICA = "dead-replica"
    SKEWED_CLOCK = "skewed-clock"


class SkewedClock:
    """The clocks of a host whose time is wrong."""

    mono_ns = staticmethod(time.perf_counter_ns)

    def __init__(self, skew_s: float) -> None:
        self._skew_ns = round(skew_s * 1e9)

    def wall_ns(self) -> int:
        """Read the wall clock."""
        return time.time_ns() + self._skew_ns


def join_from_another_host(skew_s: float) -> None:
    """Record as if on another host, whose clock is off, through the server that the run has."""
    there = os.uname()
    name = f"{there.nodename}-b"

    def renamed() -> Any:  # noqa: ANN401  (a structure of the system's)
        return os.uname_result((there.sysname, name, *there[2:]))

    os.uname = renamed
    rs.init(clock=SkewedClock(skew_s))
