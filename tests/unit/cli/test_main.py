from __future__ import annotations

from argparse import ArgumentParser, Namespace

import pytest

import rollscope
from rollscope.cli import main as module
from rollscope.cli.main import main
from rollscope.errors import CommandError, NotARunError

Out = pytest.CaptureFixture[str]


class FakeCommand:
    """Does what it is told."""

    name = "fake"
    summary = "pretend"

    def __init__(self, error: BaseException | None = None, code: int = 0) -> None:
        self._error, self._code = error, code

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("--flag", action="store_true")

    def run(self, args: Namespace) -> int:
        if self._error is not None:
            raise self._error
        return 7 if args.flag else self._code


def run(monkeypatch: pytest.MonkeyPatch, command: FakeCommand, *argv: str) -> int:
    monkeypatch.setattr(module, "_COMMANDS", (command,))
    return main(["fake", *argv])


def test_the_exit_code_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, FakeCommand()) == 0
    assert run(monkeypatch, FakeCommand(), "--flag") == 7


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (NotARunError("no such run"), 1, "rollscope: no such run\n"),
        (CommandError("cannot", 4), 4, "rollscope: cannot\n"),
        (KeyboardInterrupt(), 130, ""),
        (
            PermissionError(13, "Permission denied", "runs/a"),
            1,
            "rollscope: [Errno 13] Permission denied: 'runs/a'\n",
        ),
    ],
    ids=repr,
)
def test_an_error_becomes_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: Out, error: BaseException, code: int, told: str
) -> None:
    assert run(monkeypatch, FakeCommand(error)) == code
    assert capsys.readouterr().err == told


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run(monkeypatch, FakeCommand(ZeroDivisionError()))


def test_the_help_names_every_command(capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for command in module._COMMANDS:
        assert command.name in out
        assert command.summary in out


@pytest.mark.parametrize("command", [command.name for command in module._COMMANDS])
def test_every_command_explains_itself(command: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out


def test_the_version_is_printed(capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rollscope {rollscope.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["unknown"], ["cat"], ["cat", "a", "b"], ["--wrong"]])
def test_a_wrong_command_line_is_refused_with_the_usage(argv: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert "usage: rollscope" in capsys.readouterr().err


def test_an_unknown_option_is_refused_with_the_usage_of_its_command(capsys: Out) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["phases", "--jsn"])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("usage: rollscope phases ")
    assert "unrecognized arguments: --jsn" in complaint
