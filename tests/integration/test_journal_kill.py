"""A runner that is killed again and again goes on each time, and each item is used once."""

from __future__ import annotations

import random
import signal
from collections import Counter
from typing import TYPE_CHECKING

from rollscope.runner.journal import read_journal
from tests.integration.support import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.support import Lab

_ITEMS = 400
_KILLS = 8

_PROGRAM = """
    import asyncio, os, random, sys
    from rollscope.runner import Runner
    from rollscope.runner.journal import read_journal, writer
    import kill_tasks

    path, log_path, items, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    writer._MAX_BYTES = 20_000  # so that the file is rewritten many times
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rng = random.Random(seed)
    position = read_journal(path).next_id if os.path.exists(path) else 0

    with Runner(journal=path, concurrency=16) as runner:
        left = runner.ledger().submitted - runner.ledger().delivered
        while position < items or left:
            for _ in range(rng.randrange(30)):
                if position < items:
                    runner.submit(kill_tasks.work, position)
                    position, left = position + 1, left + 1
            outcomes = runner.wait(rng.randint(1, min(left, 12))) if left else []
            left -= len(outcomes)
            for outcome in outcomes:
                assert outcome.value == outcome.id * 2, outcome
                os.write(log, f"given {outcome.id}\\n".encode())
            runner.ack(outcomes)
            print("acked", flush=True)
            if rng.random() < 0.5:
                runner.sync_journal()
                for outcome in outcomes:
                    os.write(log, f"synced {outcome.id}\\n".encode())
"""

_TASKS = """
import asyncio, random

async def work(number):
    await asyncio.sleep(random.random() * 0.002)
    return number * 2
"""


def test_a_killed_runner_uses_every_item_once(lab: Lab) -> None:
    (lab.folder / "kill_tasks.py").write_text(_TASKS)
    journal, log = lab.folder / "runner.journal", lab.folder / "log"
    rng = random.Random(7)
    for life in range(_KILLS):
        process = lab.start(_PROGRAM, journal, log, _ITEMS, life)
        assert process.stdout is not None
        for _ in range(rng.randint(1, 6)):
            assert process.stdout.readline() == "acked\n", process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        _check(log, journal)
    last = lab.start(_PROGRAM, journal, log, _ITEMS, _KILLS)
    _, said = last.communicate(timeout=PATIENCE_S)
    assert last.returncode == 0, said
    _check(log, journal)
    state = read_journal(journal)
    assert (state.acked, state.inputs, state.outcomes) == (_ITEMS, [], [])
    assert {number for what, number in _lines(log) if what == "given"} == set(range(_ITEMS))


def _check(log: Path, journal: Path) -> None:
    """Nothing that was acknowledged and synced is given again, and nothing is in two places."""
    synced: Counter[int] = Counter()
    for what, number in _lines(log):
        if what == "synced":
            synced[number] += 1
        else:
            assert number not in synced, f"{number} was given again"
    assert set(synced.values()) <= {1}
    state = read_journal(journal)
    kept = [one.id for one in state.inputs] + [one.id for one in state.outcomes]
    assert len(kept) == len(set(kept))
    assert len(kept) + state.acked == state.next_id
    assert not synced.keys() & set(kept)


def _lines(log: Path) -> list[tuple[str, int]]:
    words = (line.split() for line in log.read_text().splitlines())
    return [(what, int(number)) for what, number in words]
