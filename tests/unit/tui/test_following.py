from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.answers import questions
from rollscope.tui.app import TopApp
from rollscope.tui.pages.steps import StepsPage
from rollscope.tui.reader import Opening
from tests.unit.tui.driving import drive, top

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_recorded_later_is_shown(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            await driver.see("band")
            with rs.phase("judging"):
                rs.flush()
                await driver.see("judging")

    drive(story())


def test_space_keeps_the_picture_and_goes_on_later(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            await driver.see("band")
            await driver.press("space")
            await driver.see("paused")
            with rs.phase("judging"):
                rs.flush()
                await driver.press("tab", "tab")
                assert "judging" not in await driver.see("ValueError")
                await driver.press("space", "tab")
                await driver.see("judging")

    drive(story())


def test_a_run_that_is_not_there_yet_is_waited_for(over: Path, tmp_path: Path) -> None:
    async def story() -> None:
        async with top(tmp_path / "later") as driver:
            await driver.see("there is no run", "Looking again")
            shutil.copytree(over, tmp_path / "later")
            await driver.see("Step 3 took")

    drive(story())


def test_a_run_that_vanishes_leaves_its_last_picture_and_may_come_back(
    over: Path, tmp_path: Path
) -> None:
    run, aside = tmp_path / "run", tmp_path / "aside"
    shutil.copytree(over, run)

    async def story() -> None:
        async with top(run) as driver:
            await driver.see("Step 3 took")
            run.rename(aside)
            await driver.see("Cannot read the run", "Step 3 took")
            aside.rename(run)
            await driver.see("Step 3 took", no="Cannot read")

    drive(story())


def test_quitting_lets_go_of_the_run(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            await driver.see("band")
            await driver.press("q")
        assert driver.app.return_value is None
        assert not driver.app._reader._thread.is_alive()

    drive(story())


def test_what_is_found_while_the_app_goes_down_is_let_go(
    over: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell_late(page: StepsPage) -> None:
        page.app.post_message(TopApp.Told(Opening(0.5)))
        await asyncio.sleep(0.05)  # the parts of the page are gone, it is not

    monkeypatch.setattr(StepsPage, "on_unmount", tell_late, raising=False)

    async def story() -> None:
        async with top(over) as driver:
            await driver.see("Step 3 took")

    drive(story())


def test_a_fault_of_ours_ends_the_app_and_is_handed_on(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = RuntimeError("ours")

    class Broken:
        def ask(self, *given: object) -> None:
            raise fault

    monkeypatch.setitem(questions.QUESTIONS, "overview", Broken())

    async def story() -> None:
        async with top(live) as driver:
            await driver.end()
        assert driver.app.return_value is fault

    drive(story())
