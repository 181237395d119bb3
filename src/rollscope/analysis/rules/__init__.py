"""The rules of a verdict: each looks for one cause of a slow step and puts it into a sentence.

A rule says what it found and how many seconds are at stake; which findings are worth telling is
left to `verdict`. A new rule is a function and its place below. *Because* is written only where
recorded links carry it; these rules go by time, so they say *while* or *after*.
"""

from typing import Final

from rollscope.analysis.rules.case import Case, Evidence, Finding, LoopStall, Rule, StuckSession
from rollscope.analysis.rules.pools import find_dead, find_gate, find_replica, find_sync
from rollscope.analysis.rules.services import find_service
from rollscope.analysis.rules.sessions import find_queue, find_stuck, find_tail, find_waste
from rollscope.analysis.rules.trust import find_clock, find_data
from rollscope.analysis.rules.work import find_loop, find_shift, find_trainer

__all__ = [
    "NOTICES",
    "RULES",
    "Case",
    "Evidence",
    "Finding",
    "LoopStall",
    "Rule",
    "StuckSession",
]

NOTICES: Final[tuple[Rule, ...]] = (find_data, find_clock)
"""What says how far the rest can be trusted; told first, whatever is at stake."""
RULES: Final[tuple[Rule, ...]] = (
    find_tail,
    find_dead,
    find_stuck,
    find_service,
    find_trainer,
    find_gate,
    find_sync,
    find_queue,
    find_replica,
    find_loop,
    find_waste,
    find_shift,
)
"""Of equal stakes, the first goes first."""
