"""The roles of logs that a server writes on its own account into a run.

A server may be anywhere and rolls nothing out: it makes no host, and keeps no run going.
"""

from typing import Final

__all__ = ["RECEIVER", "SCRAPER", "SERVER_ROLES"]

RECEIVER: Final = "receiver"
"""Tells of what came in over a network, and of the clocks of those who sent it."""
SCRAPER: Final = "scraper"
"""Tells of the metrics of engines."""
SERVER_ROLES: Final = frozenset({RECEIVER, SCRAPER})
