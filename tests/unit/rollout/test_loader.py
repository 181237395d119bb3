from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rollscope.rollout.loader import LoaderCursor
from tests.unit.rollout.executors import Loader


def test_a_cursor_goes_on_with_exactly_what_was_not_used() -> None:
    cursor = LoaderCursor(Loader(10, 2))
    drawn = [cursor.draw() for _ in range(7)]
    cursor.mark_used([0, 1, 3, 6])
    state = cursor.state_dict()
    again = LoaderCursor(Loader(10, 2), state)

    assert state == {"position": 2, "used": [3, 6]}
    assert [again.draw()[1]["id"] for _ in range(5)] == [2, 4, 5, 7, 8]
    assert [position for position, _ in drawn] == list(range(7))


def test_a_cursor_takes_loaders_that_give_single_items() -> None:
    class Single:
        batch_size = 2

        def __iter__(self) -> Iterator[Any]:
            return iter([{"id": 0}, {"id": 1}])

    cursor = LoaderCursor(Single())

    assert [cursor.draw()[1]["id"] for _ in range(3)] == [0, 1, 0]


def test_a_loader_without_items_is_told_of_every_time_until_it_has_some() -> None:
    loader = Loader(0, 2)
    cursor = LoaderCursor(loader)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no items"):
            cursor.draw()
    loader.append([{"id": 0}])

    assert cursor.draw() == (0, {"id": 0})


@pytest.mark.parametrize("good", [0, 1])
def test_a_loader_that_fails_is_asked_again_at_the_next_draw(good: int) -> None:
    failures = [OSError("no connection"), OSError("no connection")]

    class Flaky:
        batch_size = 1

        def __iter__(self) -> Iterator[Any]:
            yield from range(good)
            if failures:
                raise failures.pop()
            yield "reached"

    cursor = LoaderCursor(Flaky())
    drawn: list[Any] = []
    while "reached" not in drawn:
        try:
            drawn.append(cursor.draw()[1])
        except OSError:
            drawn.append("failed")

    assert drawn == [*range(good), "failed", *range(good), "failed", *range(good), "reached"]


def test_an_item_that_is_put_back_is_the_next_with_its_position() -> None:
    cursor = LoaderCursor(Loader(4, 2))
    drawn = [cursor.draw() for _ in range(3)]
    cursor.put_back(*drawn[2])

    assert [cursor.draw() for _ in range(2)] == [drawn[2], (3, {"id": 3})]


def test_items_can_be_marked_as_used_from_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor, errors = LoaderCursor(Loader(1, 1)), list[BaseException]()

    def mark(first: int) -> None:
        try:
            for begins in range(first, 40_000, 400):
                cursor.mark_used(range(begins, begins + 100))
                cursor.state_dict()
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=mark, args=(100 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert errors == []
    assert cursor.state_dict() == {"position": 40_000, "used": []}
