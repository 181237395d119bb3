from __future__ import annotations

import io
import os
import pty
import sys
from typing import IO, TYPE_CHECKING

import pytest

from rollscope.screens.tables import (
    Column,
    Screen,
    clean,
    say_age,
    say_size,
    shorten,
    show_table,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000
FILE = Screen()
NARROW = Screen(width=30)
COLUMNS = (Column("name", can_shrink=True), Column("count", "right"))


@pytest.fixture
def terminal() -> Iterator[IO[str]]:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream, open(ours, "rb"):
        yield stream


def test_numbers_stand_under_each_other() -> None:
    assert show_table(COLUMNS, [("a", "1"), ("bcdef", "1,000")], FILE) == (
        "name   count\na          1\nbcdef  1,000\n"
    )


def test_a_title_and_an_indent_go_before() -> None:
    assert show_table(COLUMNS, [("a", "1")], FILE, title="All", indent=2) == (
        "All\n  name  count\n  a         1\n"
    )


def test_no_rows_make_no_table() -> None:
    assert show_table(COLUMNS, [], FILE) == ""


def test_a_file_gets_every_name_whole() -> None:
    assert "x" * 500 in show_table(COLUMNS, [("x" * 500, "1")], FILE)


@pytest.mark.parametrize("width", [20, 30, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [("start-" + "x" * 100 + "-end", "1"), ("日本語" * 30, "2")]
    text = show_table(COLUMNS, rows, Screen(width=width))
    from rich.cells import cell_len

    lines = text.splitlines()
    assert len(lines) == 3
    assert max(map(cell_len, lines)) <= width
    assert "…" in lines[1]
    assert "start" in lines[1] or width == 20
    assert "end" in lines[1]


def test_columns_leave_in_their_order_where_there_is_no_room() -> None:
    columns = (Column("run"), Column("second", leaves=2), Column("first", leaves=1))
    row = [("a" * 10, "b" * 10, "c" * 10)]
    assert show_table(columns, row, Screen(width=34)).split() == [
        *("run", "second", "first"),
        *("a" * 10, "b" * 10, "c" * 10),
    ]
    assert "first" not in show_table(columns, row, Screen(width=33))
    assert "second" in show_table(columns, row, Screen(width=33))
    assert show_table(columns, row, Screen(width=12)) == "run\naaaaaaaaaa\n"


def test_a_name_is_cut_in_the_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert shorten("abcdefghijk", 10, dots="...") == "abcd...ijk"


@pytest.mark.parametrize(
    ("width", "cut"),
    [
        (23, "tail 31 %, stale 12.5 %"),
        (22, "tail 31 %, stale…"),
        (16, "tail 31 %…"),
        (9, "tail…"),
        (4, "tai…"),
    ],
)
def test_words_are_cut_at_their_end_and_stay_whole(width: int, cut: str) -> None:
    columns = (Column("", can_shrink=True, cut="end", least=1),)
    screen = Screen(width=width)
    assert show_table(columns, [("tail 31 %, stale 12.5 %",)], screen) == f"{cut}\n"
    assert shorten("abcdef", 2) == "ab"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain ü 日本 🎉", "plain ü 日本 🎉"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2028b\ufeffc", "a\\u2028b\\ufeffc"),
        ("\ud800", "\\ud800"),
        ("non\xa0breaking", "non breaking"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        (":boom:", ":boom:"),
    ],
)
def test_names_of_strangers_are_shown_and_not_obeyed(name: str, shown: str) -> None:
    assert clean(name) == shown
    text = show_table(COLUMNS, [(name, "1")], Screen(width=80), title=name)
    assert text.splitlines()[0] == text.splitlines()[2].rpartition("  ")[0].rstrip() == shown
    assert "\x1b" not in text


def test_colour_is_used_only_where_it_is_wanted() -> None:
    assert "\x1b[1m" in show_table(COLUMNS, [("a", "1")], Screen(width=80, has_colour=True))
    assert "\x1b" not in show_table(COLUMNS, [("a", "1")], Screen(width=80))


def test_a_terminal_is_looked_at(terminal: IO[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen.of(terminal)  # type: ignore[arg-type]  # what open gives is a TextIO
    assert (screen.width, screen.has_colour, screen.is_unicode) == (80, True, True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "132")
    screen = Screen.of(terminal)  # type: ignore[arg-type]
    assert (screen.width, screen.has_colour) == (132, False)


def test_a_pipe_has_no_colour_and_only_the_width_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    screen = Screen.of()
    assert (screen.width, screen.has_colour) == (None, False)
    monkeypatch.setenv("COLUMNS", "72")
    screen = Screen.of()
    assert (screen.width, screen.has_colour) == (72, False)


def test_what_the_encoding_lacks_is_written_as_escapes() -> None:
    ascii_only = Screen(width=14, encoding="ascii")
    text = show_table(COLUMNS, [("ü" * 20, "1")], ascii_only)
    assert text.isascii()
    assert "..." in text
    assert not ascii_only.is_unicode


def test_sentences_are_broken_at_blanks_only_in_a_terminal() -> None:
    text = "one two three four five six \x1b[1m"
    assert wrap(text, Screen(width=22), indent=2, hang=2) == (
        "  one two three four\n    five six \\x1b[1m"
    )
    assert wrap(text, FILE) == "one two three four five six \\x1b[1m"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (4_210_000, "4.2 MB"),
        (99_960_000, "100 MB"),
        (999_600_000, "1.0 GB"),
        (5e15, "5000 TB"),
    ],
)
def test_sizes_are_short(size: float, text: str) -> None:
    assert say_size(size) == text


def test_ages_are_short() -> None:
    now = 10**18
    assert say_age(0, now) == "-"
    assert say_age(now, now) == say_age(now + SECOND, now) == "now"
    assert say_age(now - 4 * SECOND, now) == "4 s"
    assert say_age(now - 12 * 86_400 * SECOND, now) == "12.0 d"


def test_the_size_of_the_terminal_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            raise OSError

    monkeypatch.delenv("COLUMNS", raising=False)
    assert Screen.of(Odd()).width == 80
    assert os.environ.get("COLUMNS") is None
