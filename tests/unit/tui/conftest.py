"""Runs that the terminal view is tried on: one that lives in this process, one that is over."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "\x1b[31mred\x1b]0;owned\x07\u202e[bold]"
"""Would colour the terminal, rename its window, turn the text round, and be taken for markup."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """Record a run with a step, one session over and two open, whose names are out to harm."""
    rs.init(run="live", dir=tmp_path)
    with rs.step(7, version=1), rs.task(f"{HOSTILE}/1"):
        with rs.session(sample=0) as done:
            done.finish("accepted", reward=1.0)
        with (
            rs.session(sample=1),
            rs.phase("generate", model="policy"),
            rs.session(sample=2),
            rs.phase("toolcall", tool=HOSTILE),
        ):
            with suppress(ValueError), rs.span("request"):
                raise ValueError(HOSTILE)
            rs.flush()
            yield tmp_path / "live"
    rs.shutdown()


@pytest.fixture(scope="session")
def over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a run of four steps that is long over."""
    path = tmp_path_factory.mktemp("over") / "over"
    shape = RunShape(steps=4, tasks_per_step=6, rollout_processes=2, slots=8, dying_process=False)
    generate_run(path, shape)
    return path
