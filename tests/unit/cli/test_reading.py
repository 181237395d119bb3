from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.cli.main import main
from rollscope.cli.reading import add_reading_arguments, chosen_run, open_run, runs_by_age
from rollscope.errors import CommandError, MissingExtra, NotARunError
from rollscope.model.rundir import RunFile
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from argparse import Namespace

Out = pytest.CaptureFixture[str]
SMALL = RunShape(steps=1, tasks_per_step=2, group_size=1, rollout_processes=1)


def parse(*argv: str) -> Namespace:
    parser = ArgumentParser()
    add_reading_arguments(parser)
    return parser.parse_args(argv)


def make_run(directory: Path, name: str, created_ns: int) -> Path:
    run = directory / name
    (run / "log").mkdir(parents=True)
    file = RunFile(name=name, created_ns=created_ns, schema=1)
    (run / "run.json").write_bytes(msgspec.json.encode(file))
    return run


def test_the_newest_run_is_the_one_begun_last_whatever_was_read_since(tmp_path: Path) -> None:
    newest = make_run(tmp_path, "a-new", 3)
    middle = make_run(tmp_path, "b", 2)
    oldest = make_run(tmp_path, "c-old", 1)
    os.utime(newest, (1, 1))
    (oldest / "segments").mkdir()
    assert runs_by_age(tmp_path) == [oldest, middle, newest]
    assert chosen_run(parse("--dir", str(tmp_path))) == newest


def test_a_run_may_be_named_or_given_by_its_path(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", 1)
    assert chosen_run(parse("a", "--dir", str(tmp_path))) == run
    assert chosen_run(parse(str(run))) == run
    with pytest.raises(NotARunError, match=r"no run 'b'; runs in .*: a"):
        chosen_run(parse("b", "--dir", str(tmp_path)))


def test_a_directory_without_runs_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="rollscope demo"):
        chosen_run(parse("--dir", str(tmp_path / "nowhere")))


def test_problems_and_the_choice_go_to_the_error_stream(tmp_path: Path, capsys: Out) -> None:
    generate_run(tmp_path / "a\x1b[31m", SMALL)
    (log, *_) = (tmp_path / "a\x1b[31m" / "log").iterdir()
    data = bytearray(log.read_bytes())
    data[40] ^= 0xFF
    log.write_bytes(data)
    with open_run(parse("--dir", str(tmp_path))) as store:
        assert store.query("SELECT 1 AS one")["one"][0].as_py() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "is damaged" in err
    assert "\x1b" not in err


def test_no_threads_are_refused(capsys: Out) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["runs", "--threads", "0"])
    assert refused.value.code == 2
    assert "0 is not 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [["runs"], ["sql", "-c", "SELECT 1"], ["doctor"], ["compact"], ["completion", "bash"]],
    ids=lambda argv: argv[0],
)
def test_a_missing_part_is_named_with_how_to_install_it(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    for name in ("duckdb", "shtab"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "duckdb" in err
    assert "pip install 'rollscope[server]'" in err
    assert issubclass(MissingExtra, ImportError)


BARE = """
import sys
for name in ("duckdb", "numpy", "pyarrow", "rich", "shtab"):
    sys.modules[name] = None
from rollscope.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_help_and_cat_work_without_the_extra(tmp_path: Path) -> None:
    generate_run(tmp_path / "a", SMALL)
    for argv in (["--help"], ["sql", "--help"], ["cat", str(tmp_path / "a")]):
        done = subprocess.run(
            [sys.executable, "-c", BARE, *argv], capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


def test_files_of_other_tools_are_told_apart_from_what_is_no_run(capsys: Out) -> None:
    sample = Path(__file__).parents[2] / "fixtures" / "areal" / "session_tracer"

    assert main(["steps", str(sample)]) == 1
    said = capsys.readouterr().err
    assert f"rollscope import {sample}" in said
    assert f"rollscope view {sample}" in said
