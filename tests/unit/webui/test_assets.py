from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rollscope.errors import MissingExtra
from rollscope.webui import NEEDED, load_assets, read_asset


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for name in NEEDED:
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


def test_every_file_is_ready_to_be_sent(page: Path) -> None:
    assets = load_assets(page)

    assert set(assets) == set(NEEDED)
    script = assets["app.js"]
    assert script.media_type.startswith("text/javascript")
    assert script.body == gzip.decompress(script.gzipped) == b"content of app.js"


def test_the_tag_changes_with_the_content_only(page: Path) -> None:
    before = load_assets(page)
    (page / "app.js").write_text("something else")
    after = load_assets(page)

    assert before["app.js"].etag != after["app.js"].etag
    assert before["app.css"].etag == after["app.css"].etag


def test_a_page_that_was_not_built_is_told_with_what_to_do(page: Path) -> None:
    (page / "app.css").unlink()

    with pytest.raises(MissingExtra, match=r"app\.css.*make web"):
        load_assets(page)


def test_what_is_no_file_of_the_page_is_not_served(page: Path) -> None:
    (page / "notes.bak").write_text("x")
    (page / "folder").mkdir()

    assert set(load_assets(page)) == set(NEEDED)


def test_a_file_that_the_page_does_not_have_is_told() -> None:
    with pytest.raises(MissingExtra):
        read_asset("no-such-file.js")
