"""Many tasks take no more memory than few, whoever gave up waiting on the way."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.support import Lab


@pytest.mark.parametrize(("count", "words"), [(70_000, ()), (30_000, ("recorded",))])
def test_memory_does_not_grow_with_the_number_of_tasks(
    lab: Lab, count: int, words: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "tests.integration.runner_load", str(count), *words]
    program = lab.launch(command)
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0, err
    print(out)  # noqa: T201  (a figure worth seeing)
    figures = json.loads(out)
    assert (figures["tasks"], figures["left"], figures["adds_up"]) == (count, 0, True)
    # A task in the queue takes more than 300 bytes: what 70,000 leave behind would be seen.
    assert figures["growth_mb"] < (16 if words else 8)
    assert figures["objects"] < 5_000
