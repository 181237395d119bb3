"""The changelog of a release, made from the fragments that are there now."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy what a release touches."""
    shutil.copytree(ROOT / "news", tmp_path / "news")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "join-news", tmp_path / "scripts")
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    return tmp_path


def join(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "scripts" / "join-news"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def fragments_of(tree: Path) -> list[Path]:
    return [path for path in (tree / "news").iterdir() if path.name != "README.md"]


def test_every_fragment_becomes_an_item_and_goes(tree: Path) -> None:
    (tree / "news" / "two-lines.fixed.md").write_text("The first line\nand the second.\n")
    first_lines = [path.read_text().splitlines()[0] for path in fragments_of(tree)]
    draft = join(tree, "9.8.7", "--draft")
    assert (draft.returncode, draft.stderr) == (0, "")
    assert len(fragments_of(tree)) == len(first_lines)

    assert join(tree, "9.8.7").returncode == 0

    changelog = (tree / "CHANGELOG.md").read_text()
    assert draft.stdout in changelog
    items = re.findall(r"^- (.+)$", draft.stdout, re.M)
    assert sorted(items) == sorted(first_lines)
    assert "- The first line\n  and the second.\n" in changelog
    assert changelog.index("## Unreleased") < changelog.index("## 9.8.7 (")
    assert fragments_of(tree) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no-kind.md", "x", "news/no-kind.md: rename it"),
        ("Upper.added.md", "x", "news/Upper.added.md: rename it"),
        ("empty.fixed.md", " \n", "news/empty.fixed.md: write a sentence"),
    ],
)
def test_what_is_no_fragment_stops_the_release(tree: Path, name: str, text: str, said: str) -> None:
    before = (tree / "CHANGELOG.md").read_text()
    (tree / "news" / name).write_text(text)
    done = join(tree, "9.8.7")
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert (tree / "CHANGELOG.md").read_text() == before


def test_a_version_is_released_once(tree: Path) -> None:
    assert join(tree, "9.8.7").returncode == 0
    (tree / "news" / "late.added.md").write_text("It came late.\n")
    done = join(tree, "9.8.7")
    assert done.stderr.startswith("CHANGELOG.md already has a section for 9.8.7")
    assert [path.name for path in fragments_of(tree)] == ["late.added.md"]
