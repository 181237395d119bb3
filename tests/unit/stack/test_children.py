from pathlib import Path

from rollscope.stack.children import last_lines


def test_the_end_of_a_log_is_told_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    log = tmp_path / "member.log"
    log.write_bytes(b"fine\n\n\x1b]0;title\x07red \x1b[31m\xff\n")

    assert last_lines(log) == ["fine", "\ufffd]0;title\ufffdred \ufffd[31m\ufffd"]


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none.log") == []
