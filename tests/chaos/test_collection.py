"""A short stretch under fire: nothing that was recorded is lost, doubled or out of place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.collection import Plan, run_plan
from tests.chaos.judging import judge

if TYPE_CHECKING:
    from pathlib import Path

_SHORT = Plan(
    seconds=8.0,
    writers=3,
    rate=1000,
    kills=3,
    cuts=1,
    cut_s=2.0,
    down_s=(0.1, 0.5),
    quiet_s=1.0,
    link="proxy",
)
_OF_THE_MACHINE = ("... a second", "longest call: kept waiting by us", "all on the page")
"""Rows that a busy machine decides; they count at full size only."""


def test_every_span_arrives_once_though_the_server_is_killed_and_the_link_is_cut(
    tmp_path: Path,
) -> None:
    result = run_plan(_SHORT, tmp_path)

    missed = [row for row in judge(result) if not row.is_met]
    assert [row for row in missed if not row.what.startswith(_OF_THE_MACHINE)] == []
    assert result.found.spans > 1000
    assert result.server_said == ""
