from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING

import pytest

from rollscope.store.collecting import no_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    if not before:
        gc.disable()


def test_nobody_looks_for_cycles_inside_and_somebody_does_after() -> None:
    with no_cycles():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_block_in_a_block_does_not_end_the_outer_one() -> None:
    with no_cycles():
        with no_cycles():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_inside_leaves_it_on() -> None:
    with pytest.raises(ValueError, match="inside"), no_cycles():
        raise ValueError("inside")
    assert gc.isenabled()


def test_what_was_off_before_stays_off() -> None:
    gc.disable()
    try:
        with no_cycles():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_several_threads_turns_it_on_again() -> None:
    entered, let_go = threading.Event(), threading.Event()

    def stay() -> None:
        with no_cycles():
            entered.set()
            let_go.wait(30)

    other = threading.Thread(target=stay)
    with no_cycles():
        other.start()
        assert entered.wait(30)
    assert not gc.isenabled()
    let_go.set()
    other.join(30)
    assert gc.isenabled()
