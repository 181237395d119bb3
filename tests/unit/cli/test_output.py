import io
import json
import sys

import msgspec
import pytest

from rollscope.cli.terminal.output import print_json, to_json
from rollscope.cli.terminal.progress import bar_of


class Thing(msgspec.Struct):
    name: str
    count: int


HOSTILE = Thing("\x1b[2J\x9b2J\u202e\u2028</script>🎉", 2**64 - 1)


@pytest.mark.parametrize("indent", [False, True])
def test_json_is_valid_and_holds_nothing_a_terminal_obeys(indent: bool) -> None:
    text = to_json(HOSTILE, indent=indent)
    assert json.loads(text) == {"name": HOSTILE.name, "count": HOSTILE.count}
    assert text.count("\n") == (3 if indent else 0)
    assert all(char.isprintable() or char == "\n" for char in text)


def test_json_is_one_line_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([HOSTILE])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out)[0]["count"] == HOSTILE.count


def test_json_can_be_printed_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    print_json(HOSTILE)
    out.flush()
    assert json.loads(out.buffer.getvalue()) == {
        "name": HOSTILE.name,
        "count": HOSTILE.count,
    }


def test_there_is_no_bar_where_nobody_would_see_it() -> None:
    with bar_of("Reading") as progress:
        assert progress is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_appears_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    from rollscope.cli.terminal import progress as module

    monkeypatch.setenv("TERM", "xterm")
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    with bar_of("Reading") as progress:
        assert progress is not None
        progress(1, 2)
    assert stderr.getvalue() == ""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.0)
    with bar_of("Reading [b]") as progress:
        assert progress is not None
        progress(1, 2)
        progress(2, 2)
    assert "Reading [b]" in stderr.getvalue()
