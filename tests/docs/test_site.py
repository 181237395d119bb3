"""The site is made without a warning, needs nothing from elsewhere, and has no link to nowhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.walking import DOCS, ROOT


class Page(HTMLParser):
    """What a page of the site links to, loads, and can be linked at."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag == "link" and "href" in given:
            self.loaded.add(given["href"])
        elif "src" in given:
            self.loaded.add(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--nitpicky"]
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, DOCS, place], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return place


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Page]:
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Page()
        found[path].feed(path.read_text())
    return found


def test_every_page_is_there(site: Path) -> None:
    written = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    made = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}

    assert written <= made


def test_every_link_leads_somewhere(read: dict[Path, Page]) -> None:
    lost = []
    for path, page in read.items():
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.suffix == ".html" and target in read:
                is_there = unquote(parts.fragment) in read[target].anchors
            else:
                is_there = target.exists() and target.suffix != ".html"
            if not is_there:
                lost.append(f"{path.name}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(read: dict[Path, Page]) -> None:
    loaded = set().union(*(page.loaded for page in read.values()))

    assert any(one.endswith("site.css") or "site.css?" in one for one in loaded)
    assert {one for one in loaded if urlsplit(one).scheme or one.startswith("//")} == set()


def test_search_knows_words_of_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text()

    assert '"howto/stuck"' in index
    assert "straggler" in index


def test_generated_pages_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "write-docs", "--check"], capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
