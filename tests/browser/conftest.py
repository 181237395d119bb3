"""Fixtures of the browser tests: Chromium, pages that complain, real servers, runs to look at."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from playwright.sync_api import expect, sync_playwright

from rollscope.cli.main import main
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.looking import Look
from tests.browser.paper import Paper
from tests.integration.support import PATIENCE_S, Lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize

    Serve = Callable[..., str]
    Print = Callable[..., Paper]
    OpenPage = Callable[..., Page]

_REPORT_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`against the policy: ${event.violatedDirective} ${event.blockedURI}`));"""

DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give Debian's Chromium; one for each module, since asyncio cannot run beside its driver."""
    found = shutil.which("chromium")
    if found is None:
        told = "chromium is not installed (Debian: apt-get install chromium)"
        if "CI" in os.environ:
            pytest.fail(told)
        pytest.skip(told)
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as driver:
        # The sandbox cannot be had by root in a container.
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def module_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Give a folder for runs and programs that live as long as the module's tests."""
    lab = Lab(tmp_path_factory.mktemp("browser"))
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def server(module_lab: Lab) -> Serve:
    """Give a function that serves a run or a directory of runs and says where."""

    def serve(place: Path, *options: str) -> str:
        options = options or ("--no-token",)
        process = module_lab.launch(
            [sys.executable, "-m", "rollscope", "view", str(place), "--port", "0", *options]
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http://" in line, line + process.communicate()[1]
        return line.split(" at ")[1].strip()

    return serve


@pytest.fixture(scope="module")
def hanging_run(module_lab: Lab) -> Path:
    """Give a run that lives and in which rollouts hang."""
    program = module_lab.launch([sys.executable, "-m", "tests.browser.hanging"])
    assert program.stdout is not None
    assert program.stdout.readline() == "hanging\n"
    return module_lab.run


@pytest.fixture(scope="module")
def crashed_run(module_lab: Lab) -> Path:
    """Give a run of three hosts that is over, and in which a process died."""
    path = module_lab.run.with_name("crashed")
    generate_run(path, RunShape.sized(5_000))
    return path


@pytest.fixture(scope="module")
def numbered_run(module_lab: Lab) -> Path:
    """Give a run that is over, with a number in every column, and a smaller one beside it."""
    path = module_lab.folder / "numbered" / "same"
    over = RunShape(stuck_sessions=0, dying_process=False)
    shape = msgspec.structs.replace(
        over,
        steps=3,
        tasks_per_step=8,
        failure_share=0.1,
        late_share=0.3,
        queue_share=0.5,
        retry_share=0.5,
    )
    generate_run(path, shape)
    small = msgspec.structs.replace(over, steps=1, tasks_per_step=2)
    generate_run(path.with_name("small"), small)
    return path


@pytest.fixture(scope="module")
def numbered_site(server: Serve, numbered_run: Path) -> str:
    """Serve that run and its neighbour."""
    return server(numbered_run.parent)


@pytest.fixture
def look(numbered_site: str, open_page: OpenPage) -> Look:
    """Look at that run."""
    return Look(open_page(f"{numbered_site}#/same/health"), numbered_site, "same")


@pytest.fixture
def printing(numbered_run: Path, capsys: pytest.CaptureFixture[str]) -> Print:
    """Give a function that has a command print about that run, or about what it is given."""

    def run(verb: str, *options: str, about: str = "") -> Paper:
        main([verb, about or str(numbered_run), *options])
        return Paper(capsys.readouterr().out)

    return run


@pytest.fixture(scope="module")
def hostile_run(module_lab: Lab) -> Path:
    """Give a run that lives, with hostile text in every text of every record."""
    path = module_lab.run.with_name("hostile")
    program = module_lab.launch(
        [sys.executable, "-m", "tests.browser.every_field"], {"ROLLSCOPE_RUN": path.name}
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "hanging\n"
    return path


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Give a function that opens pages; whatever one of them complains about fails the test.

    Complaints are errors and warnings of any kind, what the content policy stops, and requests to
    other places than the server. Those that hold the text `forgiven` are expected by the test.
    """
    complaints: list[str] = []
    contexts = []

    def opened(url: str, *, forgiven: str | None = None, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        contexts.append(context)
        context.add_init_script(_REPORT_VIOLATIONS)
        page = context.new_page()

        def told(message: ConsoleMessage) -> None:
            is_forgiven = forgiven is not None and forgiven in message.text
            if message.type in ("error", "warning") and not is_forgiven:
                complaints.append(f"{message.text} ({message.location['url']})")

        origin = "/".join(url.split("/")[:3])

        def asked(request: Request) -> None:
            if not request.url.startswith((origin, "data:", "blob:")):
                complaints.append(f"asked {request.url}")

        page.on("console", told)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
