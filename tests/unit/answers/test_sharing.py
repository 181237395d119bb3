"""Answers share what they gather only where somebody lets them."""

from pathlib import Path

from rollscope.answers.sharing import shared, sharing
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run


def test_things_are_gathered_once_inside_and_each_time_outside(tmp_path: Path) -> None:
    generate_run(tmp_path / "run", RunShape(steps=1, tasks_per_step=1, group_size=1))
    with RunStore(tmp_path / "run", threads=1) as store:
        with sharing():
            first: list[int] = shared(store, "a", list)
            assert shared(store, "a", list) is first
            assert shared(store, "b", list) is not first
            for number in range(20):
                shared(store, number, list)
            assert shared(store, "a", list) is not first
        outside: list[int] = shared(store, "a", list)
        assert shared(store, "a", list) is not outside


def test_runs_do_not_share_with_one_another(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate_run(tmp_path / name, RunShape(steps=1, tasks_per_step=1, group_size=1))
    with (
        RunStore(tmp_path / "one", threads=1) as one,
        RunStore(tmp_path / "two", threads=1) as two,
        sharing(),
    ):
        assert shared(one, "a", lambda: 1) == 1
        assert shared(two, "a", lambda: 2) == 2
