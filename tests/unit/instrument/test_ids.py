from __future__ import annotations

import subprocess
import sys
import threading
from itertools import islice

import pytest

from rollscope.instrument.ids import IdSource, RandomIds, span_counter
from rollscope.testing import SequentialIds

SEEDED = """
import random
random.seed(42)
from rollscope.instrument.ids import RandomIds, span_counter
ids = RandomIds()
print(ids.process_id().hex())
counter = span_counter(ids)
for _ in range(1000):
    print(ids.trace_id().hex(), format(next(counter), "016x"))
"""


def test_processes_with_the_same_seed_never_repeat_an_id() -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", SEEDED], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ids = [word for worker in workers for word in worker.communicate(timeout=60)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 4
    assert len(ids) == len(set(ids)) == 4 * 2001


def test_a_fork_forgets_the_trace_ids_that_its_parent_drew() -> None:
    ids = RandomIds()
    ids.trace_id()
    drawn = set(ids._pool)
    ids.process_id()
    assert drawn
    assert not drawn & {ids.trace_id() for _ in range(1000)}


@pytest.mark.parametrize("ids", [RandomIds(), SequentialIds(), SequentialIds(process=500)])
def test_ids_have_the_sizes_that_frames_hold(ids: IdSource) -> None:
    assert len(ids.process_id()) == 8
    assert 0 < ids.first_span_id() < 2**63
    assert len(ids.trace_id()) == 16


def test_span_ids_count_up_from_where_the_source_begins() -> None:
    assert list(islice(span_counter(SequentialIds()), 3)) == [1, 2, 3]


def test_a_random_start_leaves_room_for_counting() -> None:
    for _ in range(1000):
        first = RandomIds().first_span_id()
        assert 0 < first < 2**63


def test_threads_never_share_a_trace_id() -> None:
    ids = RandomIds()
    found: list[bytes] = []

    def draw() -> None:
        found.extend([ids.trace_id() for _ in range(5000)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 40_000


def test_sequential_ids_of_two_processes_lie_apart() -> None:
    one, two = SequentialIds(1), SequentialIds(2)
    assert one.process_id() != two.process_id()
    assert two.first_span_id() - one.first_span_id() == 2**40
    assert not {one.trace_id() for _ in range(100)} & {two.trace_id() for _ in range(100)}
