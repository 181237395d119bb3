from __future__ import annotations

import sys
import threading

from rollscope.instrument.buffers import ROW, Buffers, take_all
from rollscope.instrument.spans import Span


def test_taking_empties_the_list_itself() -> None:
    items = [1, 2, 3]
    assert take_all(items) == [1, 2, 3]
    assert items == []
    assert take_all(items) == []


def test_what_is_appended_while_taking_is_neither_lost_nor_doubled() -> None:
    items: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []
    running = threading.Barrier(5)

    def append(thread: int) -> None:
        running.wait()
        for number in range(5000):
            items.append((thread, number))  # noqa: PERF401  (one by one is the point)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    running.wait()
    while any(thread.is_alive() for thread in threads):
        taken += take_all(items)
    taken += take_all(items)
    assert len(taken) == 20_000
    for number in range(4):
        assert [n for thread, n in taken if thread == number] == list(range(5000))


def test_rows_of_threads_that_extend_at_once_stay_whole() -> None:
    buffers = Buffers()

    def extend(thread: int) -> None:
        for _ in range(3000):
            buffers.rows.extend((thread,) * ROW)

    threads = [threading.Thread(target=extend, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [buffers.rows[at : at + ROW] for at in range(0, len(buffers.rows), ROW)]
    assert len(rows) == 12_000
    assert all(len(set(row)) == 1 for row in rows)


def test_clearing_keeps_the_lists_that_others_hold() -> None:
    buffers = Buffers()
    rows = buffers.rows
    rows.extend(range(ROW))
    buffers.facts.append((b"", 1, 1, {}))
    buffers.payloads.append((b"", 1, 1, "n", None))
    buffers.clear()
    assert buffers.rows is rows
    assert not any((buffers.rows, buffers.open, buffers.facts, buffers.samples, buffers.payloads))


def test_open_spans_are_found_while_other_threads_open_and_end_more() -> None:
    buffers, is_over = Buffers(), threading.Event()
    for number in range(500):
        buffers.open[number] = Span()
        buffers.open[number].id = number

    def churn() -> None:
        other = Span()
        other.id = 1_000
        while not is_over.is_set():
            for number in range(1_000, 1_040):
                buffers.open[number] = other
            for number in range(1_000, 1_040):
                del buffers.open[number]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(20_000):
            found = [span.id for span in buffers.opened_since(lambda number: number < 495)]
            assert [number for number in found if number != 1_000] == [495, 496, 497, 498, 499]
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(interval)
