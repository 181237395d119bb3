"""Event loops that were blocked, and the code that blocked them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rollscope as rs
from rollscope.answers.loops import loop_stalls
from rollscope.model.loops import LAG_METRIC
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stall_names_the_line_that_blocked_longest(tmp_path: Path) -> None:
    rs.init(run="blocked", dir=tmp_path)
    rs.observe(LAG_METRIC, 1.5)
    rs.observe(LAG_METRIC, 0.3)
    rs.event("loop_blocked", culprit="/my app/rewards.py:88 tokenize", blocked_s=1.5)
    rs.event("loop_blocked", culprit="/my app/train.py:6 parse", blocked_s=0.3)
    rs.event("loop_blocked", culprit=7, blocked_s="an event of somebody else")
    rs.shutdown()
    with RunStore(tmp_path / "blocked") as store:
        (stall,) = loop_stalls(store, 0, store.now_ns)
    assert stall.longest_ns == 1_500_000_000
    assert stall.total_ns == 1_800_000_000
    assert stall.where == "`tokenize` (rewards.py:88)"
