"""The programs of others: where they are, which version they are, and what to do if not.

Nothing is ever downloaded. A program is looked for where the user says, then by a variable, then
on PATH under its usual names, then where packages and archives usually put it.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollscope.errors import CommandError

__all__ = ["PROGRAMS", "Found", "Program", "find_installed", "find_program", "find_programs"]

_VERSION_S: Final = 10.0
_VERSION: Final = re.compile(r"(?<![\w.])v?(\d+)\.(\d+)(?:\.(\d+))?")
_PLACES: Final = (
    "/usr/local/bin",
    "/usr/bin",
    "/usr/sbin",
    "/opt/{name}",
    "/opt/{name}/bin",
    "/usr/local/{name}",
    "/usr/share/{name}/bin",
    "/opt/homebrew/bin",
    "~/bin",
    "~/.local/bin",
)


@dataclass(frozen=True)
class Program:
    """A program that the stack can run."""

    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]
    """Names that it goes by, each with the words that have to follow."""
    least: tuple[int, int]
    install: str

    @property
    def variable(self) -> str:
        """The variable that says where it is."""
        return f"ROLLSCOPE_{self.name.upper()}"

    @property
    def option(self) -> str:
        """The option that says where it is."""
        return f"--{self.name}-bin"


@dataclass(frozen=True)
class Found:
    """A program that is there and new enough."""

    command: tuple[str, ...]
    version: str


PROGRAMS: Final = {
    program.name: program
    for program in (
        Program(
            "prometheus",
            "Prometheus",
            (("prometheus",),),
            (2, 37),
            "apt install prometheus, or unpack an archive from prometheus.io/download",
        ),
        Program(
            "alertmanager",
            "Alertmanager",
            (("alertmanager",), ("prometheus-alertmanager",)),
            (0, 24),
            "apt install prometheus-alertmanager, or unpack an archive from prometheus.io/download",
        ),
        Program(
            "tempo",
            "Tempo",
            (("tempo",),),
            (2, 0),
            "unpack an archive from github.com/grafana/tempo/releases",
        ),
        Program(
            "grafana",
            "Grafana",
            (("grafana-server",), ("grafana", "server")),
            (9, 5),
            "follow grafana.com/grafana/download",
        ),
    )
}
"""Those that `--with` takes, in the order in which help names them."""


def find_program(program: Program, given: str | None, environ: Mapping[str, str]) -> Found:
    """Find a program and make sure that it runs and is new enough.

    Raises:
        CommandError: It is missing, does not run, or is too old; the message says what to do.
    """
    command = _locate(program, given, environ)
    version = _ask_version(program, command)
    if version[:2] < program.least:
        least = ".".join(map(str, program.least))
        raise CommandError(
            f"{command[0]} is {program.title} {_text(version)}, and at least {least} is needed: "
            f"{program.install}, or name another one with {program.option}"
        )
    return Found(command, _text(version))


def find_programs(
    wanted: Sequence[str], given: Mapping[str, str | None], environ: Mapping[str, str]
) -> dict[str, Found]:
    """Find all that are wanted.

    Raises:
        CommandError: At least one cannot be used; the message tells of all of them, so that
            nobody has to install one to hear of the next.
    """
    found, troubles = {}, list[CommandError]()
    for name in wanted:
        try:
            found[name] = find_program(PROGRAMS[name], given.get(name), environ)
        except CommandError as error:
            troubles.append(error)
    if troubles:
        code = max(error.exit_code for error in troubles)
        raise CommandError("\n".join(map(str, troubles)), code)
    return found


def find_installed(environ: Mapping[str, str]) -> list[Program]:
    """Give those that seem to be here, without running any."""
    return [each for each in PROGRAMS.values() if _look_around(each, environ) is not None]


def _locate(program: Program, given: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    for source, path in (
        (program.option, given),
        (program.variable, environ.get(program.variable)),
    ):
        if not path:
            continue
        found = shutil.which(os.path.expanduser(path))
        if found is None:
            raise CommandError(f"{source} names {path}, which is no program that can be run", 2)
        return _with_words(program, os.path.abspath(found))
    around = _look_around(program, environ)
    if around is None:
        raise CommandError(
            f"{program.title} was asked for and is not installed here: {program.install}; if it "
            f"is somewhere else, name it with {program.option} or {program.variable}"
        )
    return around


def _with_words(program: Program, path: str) -> tuple[str, ...]:
    """Add the words that a program of this name wants, as `grafana` wants `server`."""
    for name, *words in program.commands:
        if Path(path).name == name:
            return (path, *words)
    return (path,)


def _look_around(program: Program, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    if given := environ.get(program.variable):
        found = shutil.which(os.path.expanduser(given))
        return None if found is None else _with_words(program, os.path.abspath(found))
    places = [os.path.expanduser(place.format(name=program.name)) for place in _PLACES]
    for path in (environ.get("PATH", os.defpath), os.pathsep.join(places)):
        for name, *words in program.commands:
            found = shutil.which(name, path=path)
            if found is not None:
                return (os.path.abspath(found), *words)
    return None


def _ask_version(program: Program, command: tuple[str, ...]) -> tuple[int, ...]:
    # `grafana server` wants the question before its own word.
    question = [command[0], "--version"]
    try:
        answer = subprocess.run(  # noqa: S603  (the program that the user has, or names)
            question,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unusable(program, command[0], f"says nothing for {_VERSION_S:g} s") from None
    except OSError as error:
        raise _unusable(program, command[0], f"cannot be run: {error.strerror}") from error
    said = (answer.stdout + answer.stderr).decode(errors="replace")
    found = _VERSION.search(said)
    if answer.returncode or found is None:
        first = said.strip().partition("\n")[0] or f"it ends with code {answer.returncode}"
        raise _unusable(program, command[0], f"does not tell its version: {first}")
    return tuple(int(part or 0) for part in found.groups())


def _unusable(program: Program, path: str, why: str) -> CommandError:
    return CommandError(f"{path} {why}; name another {program.title} with {program.option}")


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
