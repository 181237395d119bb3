from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING

import pytest

from rollscope.cli.main import main
from rollscope.cli.terminal import repl
from rollscope.testing import RunShape, generate_run
from tests.builders import dead_header, make_batch, make_columns, make_row, write_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Out = pytest.CaptureFixture[str]
SHAPE = RunShape(steps=1, tasks_per_step=3, group_size=2, rollout_processes=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("runs") / "a"
    generate_run(path, SHAPE)
    return str(path)


def ask(capsys: Out, *argv: str) -> str:
    assert main(["sql", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_a_query_gives_a_table(run: str, capsys: Out) -> None:
    out = ask(capsys, run, "-c", "SELECT 'a' AS name, 12 AS n, 1.5 AS x UNION ALL SELECT 'bb',3,2")
    assert sorted(out.splitlines()) == sorted(
        ["name   n    x", "a     12  1.5", "bb     3  2.0", "(2 rows)"]
    )


def test_json_is_an_array_of_objects(run: str, capsys: Out) -> None:
    sql = (
        "SELECT 18446744073709551615::UBIGINT AS id, 'nan'::DOUBLE AS x, NULL AS y, "
        "'\\xff'::BLOB AS b, [1, 2] AS l, {'k': 1.5} AS s, DATE '2026-01-02' AS d, 1 AS d"
    )
    for flags in (["--json"], ["--format", "json"]):
        (row,) = json.loads(ask(capsys, run, *flags, "-c", sql))
        assert row == {
            **{"id": 2**64 - 1, "x": None, "y": None, "b": "ff", "l": [1, 2]},
            **{"s": {"k": 1.5}, "d": "2026-01-02", "d_2": 1},
        }


def test_csv_keeps_every_value_exactly(run: str, capsys: Out) -> None:
    sql = "SELECT 'a,\"b\"' || chr(10) || 'c' AS t, 0.1 + 0.2::DOUBLE AS x, span_id FROM steps"
    out = ask(capsys, run, "--format", "csv", "-c", sql)
    head, row = csv.reader(io.StringIO(out))
    assert head == ["t", "x", "span_id"]
    assert row[0] == 'a,"b"\nc'
    assert float(row[1]) == 0.1 + 0.2


def test_queries_come_from_a_file_or_the_input(
    run: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT 1 AS a;\n-- and\nSELECT 2 AS b;\n")
    assert ask(capsys, run, str(file)).split() == ["a", "1", "(1", "row)", "b", "2", "(1", "row)"]
    for argv in ([run], [run, "-"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS c"))
        assert ask(capsys, *argv).split()[:2] == ["c", "3"]


def test_a_long_answer_is_cut_as_a_table_and_whole_otherwise(run: str, capsys: Out) -> None:
    assert main(["sql", run, "-c", "FROM range(3000)"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1002
    assert "only the first 1,000 rows" in err
    assert len(json.loads(ask(capsys, run, "--json", "-c", "FROM range(3000)"))) == 3000
    assert main(["sql", run, "--json", "--rows", "2", "-c", "FROM range(3000)"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_query_in_another_locale_is_understood(run: str, capsys: Out) -> None:
    given = "SELECT 'ü' AS u".encode().decode("ascii", "surrogateescape")
    assert json.loads(ask(capsys, run, "--json", "-c", given)) == [{"u": "ü"}]
    assert main(["sql", run, "-c", "SELECT '\udcff'"]) == 1
    assert "UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (["-c", "SELEC 1"], 1, "syntax error"),
        (["-c", "COPY spans TO 'x.csv'"], 1, "only queries that read"),
        (["-c", "FROM read_text('/etc/passwd')"], 1, "nothing else"),
        (["-c", ""], 2, "no query"),
        (["nowhere.sql"], 1, "nowhere.sql"),
        (["nowhere.sql", "-c", "SELECT 1"], 2, "not both"),
        (["--rows", "0", "-c", "SELECT 1"], 2, "--rows"),
    ],
)
def test_what_cannot_be_answered_is_told(
    run: str, capsys: Out, argv: list[str], code: int, told: str
) -> None:
    assert main(["sql", run, *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rollscope: ")
    assert told in err


def test_recorded_text_is_shown_and_not_obeyed(tmp_path: Path, capsys: Out) -> None:
    rows = make_columns(make_row(1, "\x1b]0;x\x07<script>\u202e\x9b1m"))
    batches = [make_batch(0, header=dead_header()), make_batch(1, spans=rows)]
    write_log(tmp_path / "log" / "a.rsl", batches)
    for more in ([], ["--json"]):
        out = ask(capsys, str(tmp_path), *more, "-c", "SELECT name FROM spans")
        assert all(char.isprintable() or char == "\n" for char in out)
        assert "<script>" in out
    assert main(["sql", str(tmp_path), "-c", "SELECT name::INT FROM spans"]) == 1
    err = capsys.readouterr().err
    assert "<script>" in err
    assert all(char.isprintable() or char == "\n" for char in err)


class Typist:
    """Types lines, and perhaps Ctrl-C, at a terminal."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines: Iterator[str | type[BaseException]] = iter(lines)
        self.prompts: list[str] = []

    def input(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, EOFError)
        if isinstance(line, str):
            return line
        raise line

    def isatty(self) -> bool:
        return True


def talk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: str, typist: Typist) -> int:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("builtins.input", typist.input)
    monkeypatch.setattr(sys, "stdin", typist)
    return main(["sql", run])


def test_the_prompt_takes_lines_until_a_semicolon(
    run: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    typist = Typist("SELECT 'a;'", "  AS x", ";", "", KeyboardInterrupt, "SELECT 7 AS y;")
    assert talk(monkeypatch, tmp_path, run, typist) == 0
    assert typist.prompts == ["sql> ", "...> ", "...> ", "sql> ", "sql> ", "sql> ", "sql> "]
    out, err = capsys.readouterr()
    assert err == ""
    assert "x\na;\n(1 row)" in out
    assert "y\n7\n" in out


def test_the_prompt_explains_itself_and_goes_on_after_mistakes(
    run: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (".help", ".views", ".schema steps", ".schema x'; DROP", ".what", "SELEC;", ".quit")
    assert talk(monkeypatch, tmp_path, run, Typist(*lines, "SELECT 'not reached';")) == 0
    out, err = capsys.readouterr()
    assert ".schema VIEW" in out
    assert "sessions\n" in out
    assert "duration_ns" in out
    assert "which view?" in err
    assert "there is no .what" in err
    assert "syntax error" in err
    assert "not reached" not in out


@pytest.mark.parametrize(
    ("text", "is_complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; ", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT ';'", False),
        ("SELECT 'it''s';", True),
        ('SELECT ";" ;', True),
        ("SELECT 1 -- ;", False),
        ("SELECT 1; -- done", True),
        ("SELECT 1 /* ; */", False),
        ("SELECT 1 /* ' */;", True),
        ("SELECT 1; /* open", False),
        ("", False),
    ],
)
def test_a_query_is_complete_at_a_semicolon_that_counts(text: str, is_complete: bool) -> None:
    assert repl.is_complete(text) is is_complete


def test_a_query_in_the_place_of_a_file_is_asked(run: str, capsys: Out) -> None:
    assert main(["sql", run, "SELECT 40 + 2 AS answer"]) == 0
    assert "42" in capsys.readouterr().out
