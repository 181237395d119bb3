"""What is recorded of event loops: those who record it and those who read it name it from here."""

from typing import Final

__all__ = ["BLOCKED_EVENT", "BLOCKED_FROM_S", "LAG_METRIC"]

LAG_METRIC: Final = "event_loop_lag_seconds"
"""The histogram of how late an event loop ran what was due."""
BLOCKED_EVENT: Final = "loop_blocked"
"""What a runner records of code that blocks its loop."""
BLOCKED_FROM_S: Final = 0.25
"""How long code has to block a loop before a runner looks which it is."""
