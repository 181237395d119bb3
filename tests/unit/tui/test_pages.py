from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from tests.unit.tui.driving import LARGE, SMALL, drive, top

if TYPE_CHECKING:
    from pathlib import Path

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])


@SIZES
def test_a_live_run_lands_on_what_is_in_flight(live: Path, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with top(live, size) as driver:
            await driver.see("Now  live", "step 7, live", "Stuck and slow", "generate")
            text = await driver.see("in flight 2 of ~2", "errors    1 in 5m")
            assert all(cell_len(line) <= size[0] for line in text.splitlines())
            assert len(text.splitlines()) == size[1]
            assert "? keys  q quit" in text

    drive(story())


def test_a_low_terminal_shows_one_table_at_a_time_and_tab_turns_to_the_next(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            assert "heard" not in await driver.see("band", "session")
            await driver.press("tab")
            assert "band" not in await driver.see("heard", "1/1")
            await driver.press("tab")
            await driver.see("count", "ValueError")
            await driver.press("shift+tab", "shift+tab")
            await driver.see("band")

    drive(story())


def test_what_was_recorded_cannot_reach_the_terminal(live: Path) -> None:
    async def story() -> None:
        async with top(live, LARGE) as driver:
            await driver.see("\\x1b", "band", "heard", "count")  # all tables, where they fit
            for keys in (("tab",), ("tab",), ("tab", "enter"), ("escape", "g", "s"), ("enter",)):
                await driver.press(*keys)
                await driver.see("live")
                unseen = {
                    char for char in driver.text if unicodedata.category(char) in ("Cc", "Cf")
                }
                assert unseen <= {"\n"}

    drive(story())


def test_enter_opens_the_session_and_escape_goes_back(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            await driver.see("band", "toolcall")
            await driver.press("j", "enter")
            await driver.see("Session  live", "has been open for", "Where its time went")
            await driver.press("escape")
            await driver.see("Now  live", "band")
            await driver.press("escape")  # the last page stays
            await driver.see("Now  live", "band")

    drive(story())


def test_a_run_that_is_over_lands_on_its_steps(over: Path) -> None:
    async def story() -> None:
        async with top(over) as driver:
            text = await driver.see("Steps", "Step 3 took", "vs median")
            assert [line.split()[0] for line in text.splitlines() if " % " in line[9:25]] == [
                "3",
                "2",
                "1",
            ]

    drive(story())


def test_a_step_tells_its_story_and_brackets_go_to_its_neighbours(over: Path) -> None:
    async def story() -> None:
        async with top(over, LARGE) as driver:
            await driver.see("vs median")
            await driver.press("enter")
            await driver.see("Step 3 took", "Critical path", "Who waits", "Tail", "charged")
            await driver.press("left_square_bracket")
            await driver.see("Step 2 took")
            await driver.press("right_square_bracket", "right_square_bracket")  # there is no 4
            await driver.see("Step 3 took")
            await driver.press("tab", "enter")
            await driver.see("Where its time went", "Its group")
            await driver.press("escape", "escape")
            await driver.see("vs median")

    drive(story())


def test_keys_that_arrive_together_do_what_they_do_apart(over: Path) -> None:
    async def story() -> None:
        async with top(over) as driver:
            await driver.see("vs median")
            driver.burst("g", "n")
            await driver.see("Now, as of its end")
            await driver.press("question_mark")  # no key is lost after them
            await driver.see("these keys")
            driver.burst("g", "s")  # the list of keys stays until it is closed
            await driver.press("escape")
            await driver.see("Now, as of its end", no="these keys")

    drive(story())


def test_g_leads_to_the_pages_there_are_and_names_where_the_others_are(over: Path) -> None:
    async def story() -> None:
        async with top(over) as driver:
            await driver.see("vs median")
            await driver.press("g", "n")
            await driver.see("Now, as of its end", "In flight by phase")
            await driver.press("g", "s")
            await driver.see("vs median")
            await driver.press("g", "h")
            await driver.see("Health is on the page")

    drive(story())


def test_keys_are_listed_colours_changed_and_any_size_taken(live: Path) -> None:
    async def story() -> None:
        async with top(live) as driver:
            await driver.see("band")
            await driver.press("question_mark")
            await driver.see("Space", "pause, and go on")
            await driver.press("escape", "t", "t")
            assert driver.app.theme == "textual-light"
            await driver.press("t")
            assert driver.app.theme == "ansi-dark"
            for width, height in ((20, 5), (200, 60), (80, 24)):
                await driver.resize(width, height)
                text = await driver.see("Now")
                assert len(text.splitlines()) == height
            await driver.see("band", "In flight by phase")

    drive(story())
