from __future__ import annotations

import queue
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rollscope.store.run import find_run
from rollscope.tui.reader import Opening, Reader, Reading, Report, Trouble, Wish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATIENCE_S = 30.0


class Heard:
    """What a reader told."""

    def __init__(self) -> None:
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()

    def put(self, report: Report) -> None:
        if not isinstance(report, Opening):
            self._reports.put(report)

    def next(self) -> Report:
        return self._reports.get(timeout=_PATIENCE_S)

    def reading(self) -> Reading:
        report = self.next()
        assert isinstance(report, Reading), report
        return report

    def is_empty(self) -> bool:
        return self._reports.empty()


@contextmanager
def reading(run: Path, wish: Wish, every_s: float = 0.02) -> Iterator[tuple[Reader, Heard]]:
    heard = Heard()
    reader = Reader(lambda: find_run(str(run)), heard.put, every_s=every_s, threads=1)
    reader.want(wish)
    reader.start()
    try:
        yield reader, heard
    finally:
        reader.stop()


def test_a_run_that_is_over_is_asked_once_for_each_wish(over: Path) -> None:
    overview, stuck = Wish("overview"), Wish("stuck")
    with reading(over, overview) as (reader, heard):
        assert heard.reading().wish == overview
        reader.want(stuck)
        assert heard.reading().wish == stuck
        reader.want(overview)
        assert heard.reading().wish == overview
    assert heard.is_empty()


def test_a_run_that_lives_is_asked_again_and_again(live: Path) -> None:
    with reading(live, Wish("stuck")) as (_, heard):
        ages = [heard.reading().run.now_ns for _ in range(3)]
    assert ages == sorted(set(ages))


def test_a_new_wish_is_asked_at_once_even_while_pausing(live: Path) -> None:
    with reading(live, Wish("stuck"), every_s=3600) as (reader, heard):
        assert heard.reading().wish.question == "stuck"
        reader.pause(True)
        reader.want(Wish("hosts"))
        assert heard.reading().wish.question == "hosts"


def test_what_the_run_does_not_have_is_refused_in_a_sentence(over: Path) -> None:
    with reading(over, Wish("step", (("step", "99"),))) as (_, heard):
        refused = heard.reading()
    assert refused.answer is None
    assert "no step 99" in refused.refusal


def test_a_run_that_was_replaced_is_told_of_and_opened_anew(
    over: Path, live: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(over, run)
    with reading(run, Wish("overview")) as (_, heard):
        assert heard.reading().run.name == "over"
        run.rename(tmp_path / "aside")
        while isinstance(heard.next(), Reading):
            pass
        shutil.copytree(live, run)
        report = heard.next()
        while isinstance(report, Trouble):
            report = heard.next()
        assert isinstance(report, Reading)
        assert report.run.name == "live"
