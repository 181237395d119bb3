"""What goes wrong in the demo is named: by the commands while it runs, and by the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.integration.support import PATIENCE_S, Lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]


_STEPS = 8
"""How many may go by before what goes wrong is named."""


class Demo:
    """A demo in which something goes wrong, and that goes on until it is ended."""

    def __init__(self, lab: Lab, fault: str) -> None:
        self._folder = lab.folder / fault
        self._folder.mkdir()
        self._process = lab.launch(
            [
                *(sys.executable, "-m", "rollscope", "demo", "--port", "0", "--steps", "400"),
                *("--dir", str(self._folder), "--fault", fault),
            ]
        )
        self.address = self._line("live at ").split("live at ")[1].strip()
        self.run = re.sub(r".*#/(.*)/now", r"\1", self.address)

    def _line(self, mark: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if mark in line:
                return str(line)
        raise AssertionError(self._process.communicate()[1])

    def wait_for_step(self, step: int) -> None:
        self._line(f"  step {step:3}")

    def ask(self, *words: str) -> Any:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "rollscope", *words),
                *(str(self._folder / self.run), "--json"),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        return json.loads(done.stdout)

    def page(self, name: str) -> str:
        return self.address.removesuffix("/now") + name

    def sentences(self, step: int) -> list[str]:
        answer = self.ask("steps", "--step", str(step))
        return [finding["sentence"] for finding in answer["verdict"]["findings"]]


@pytest.fixture
def start(module_lab: Lab) -> Iterator[Callable[[str], Demo]]:
    yield lambda fault: Demo(module_lab, fault)
    module_lab.close()


def test_a_slow_reward_is_named(start: Callable[[str], Demo], open_page: OpenPage) -> None:
    demo = start("slow-reward")

    # Steps whose sessions are all consumed; those of later ones may yet turn out to be of the next.
    # On a busy machine something else may have held one of them, or some.
    for step in range(_STEPS):
        demo.wait_for_step(step + 1)
        if any(line.startswith("reward `digits` held ") for line in demo.sentences(step)):
            break
    else:
        pytest.fail(f"it held none of {_STEPS} steps")
    page = open_page(demo.page(f"/step/{step}"))
    expect(page.locator("[data-panel=verdict]")).to_contain_text("reward digits held ")


def test_a_stuck_tool_is_named_with_the_line_it_hangs_on(
    start: Callable[[str], Demo], open_page: OpenPage
) -> None:
    demo = start("stuck-tool")
    demo.wait_for_step(4)

    (stuck, *_) = demo.ask("stuck")["rows"]
    assert (stuck["band"], stuck["name"], stuck["detail"]) == ("stuck", "toolcall", "calculator")
    assert "sandbox.py" in stuck["line"]
    page = open_page(demo.page("/now"))
    row = page.get_by_role("row").filter(has_text="calculator")
    expect(row.first).to_contain_text("stuck")


def test_a_dead_replica_is_named(start: Callable[[str], Demo], open_page: OpenPage) -> None:
    demo = start("dead-replica")
    demo.wait_for_step(4)

    named = [step for step in (2, 3) if "Incomplete: replica 1 died." in demo.sentences(step)]
    assert named
    page = open_page(demo.page(f"/step/{named[0]}"))
    expect(page.get_by_text("Incomplete: replica 1 died.").first).to_be_visible()


def test_a_skewed_clock_is_named_and_put_right(
    start: Callable[[str], Demo], open_page: OpenPage
) -> None:
    demo = start("skewed-clock")
    demo.wait_for_step(3)

    (said,) = [line for line in demo.sentences(3) if "clock" in line]
    assert re.fullmatch(r"\S+-b's clock is 2\.[45]\d* s ahead; its times were moved\.", said)
    page = open_page(demo.page("/step/3"))
    expect(page.get_by_text("its times were moved").first).to_be_visible()
