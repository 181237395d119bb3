"""Runs as the list of them shows them, from outside."""

from __future__ import annotations

import pytest

from rollscope.server.listing import describe_run
from tests.integration.support import PATIENCE_S, Lab

_PROGRAM = """
    import os, signal
    import rollscope as rs

    rs.init()
    with rs.session(sample=0):
        rs.flush()
        {end}
"""


@pytest.mark.parametrize(
    ("end", "is_crashed"), [("os.kill(os.getpid(), 9)", True), ("pass", False)]
)
def test_a_run_whose_last_process_died_is_told_from_one_that_ended(
    lab: Lab, end: str, is_crashed: bool
) -> None:
    lab.start(_PROGRAM.format(end=end)).communicate(timeout=PATIENCE_S)
    entry = describe_run(lab.run.name, lab.run)
    assert (entry.is_alive, entry.is_crashed, entry.problem) == (False, is_crashed, "")


def test_a_run_that_goes_on_is_alive(lab: Lab) -> None:
    program = lab.start(_PROGRAM.format(end="print('on', flush=True); input()"))
    assert program.stdout is not None
    assert program.stdout.readline() == "on\n"
    entry = describe_run(lab.run.name, lab.run)
    assert (entry.is_alive, entry.is_crashed) == (True, False)
    program.communicate("\n", timeout=PATIENCE_S)
