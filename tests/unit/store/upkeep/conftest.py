from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.testing import RunShape, generate_run
from tests.unit.store.upkeep.sealed_runs import open_sealer

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = RunShape(steps=3, tasks_per_step=4, group_size=2, rollout_processes=3, slots=8)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give a run that was sealed in several goes, a log at a time."""
    path = tmp_path / "run"
    generate_run(path, SHAPE)
    aside = tmp_path / "aside"
    (path / "log").rename(aside)
    (path / "log").mkdir()
    for log in sorted(aside.iterdir()):
        log.rename(path / "log" / log.name)
        sealer = open_sealer(path)
        sealer.poll()
        assert sealer.seal()
    return path
