from __future__ import annotations

from pathlib import Path

import pytest

from rollscope.config import unknown_variables
from rollscope.errors import CommandError
from rollscope.stack import programs
from rollscope.stack.programs import PROGRAMS, find_installed, find_program, find_programs


def script(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _nothing_in_usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PLACES", ())


def test_the_option_wins_over_the_variable_and_the_variable_over_path(tmp_path: Path) -> None:
    prometheus = PROGRAMS["prometheus"]
    on_path = script(tmp_path / "bin" / "prometheus", "echo prometheus, version 2.40.0")
    by_variable = script(tmp_path / "set", "echo prometheus, version 2.41.0")
    by_option = script(tmp_path / "given", "echo prometheus, version 2.42.1+ds")

    environ = {"PATH": str(tmp_path / "bin")}
    assert find_program(prometheus, None, environ).command == (on_path,)
    environ["ROLLSCOPE_PROMETHEUS"] = by_variable
    assert find_program(prometheus, None, environ).version == "2.41.0"
    found = find_program(prometheus, by_option, environ)
    assert (found.command, found.version) == ((by_option,), "2.42.1")


def test_usual_places_are_looked_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PLACES", (f"{tmp_path}/opt/{{name}}",))
    path = script(tmp_path / "opt" / "tempo" / "tempo", "echo 'tempo, version 2.3.1'")
    assert find_program(PROGRAMS["tempo"], None, {"PATH": "/nowhere"}).command == (path,)


@pytest.mark.parametrize(
    ("name", "words"), [("grafana-server", ()), ("grafana", ("server",)), ("renamed", ())]
)
def test_grafana_is_started_by_either_of_its_names(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    path = script(tmp_path / name, 'test "$1" = --version && echo "Version 10.4.2 (commit: x)"')
    assert find_program(PROGRAMS["grafana"], path, {}).command == (path, *words)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_program_is_named_with_what_to_install(name: str) -> None:
    with pytest.raises(CommandError) as caught:
        find_program(PROGRAMS[name], None, {"PATH": "/nowhere"})
    told = str(caught.value)
    assert "is not installed here" in told
    assert PROGRAMS[name].install in told
    assert f"--{name}-bin" in told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("echo prometheus, version 2.30.3", "is Prometheus 2.30.3, and at least 2.37 is needed"),
        ("echo no idea", "does not tell its version: no idea"),
        ("echo boom >&2; exit 3", "does not tell its version: boom"),
        ("exit 3", "does not tell its version: it ends with code 3"),
        ("exec sleep 60", "says nothing for 0.2 s"),
    ],
)
def test_a_program_that_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, told: str
) -> None:
    monkeypatch.setattr(programs, "_VERSION_S", 0.2 if "sleep" in body else 10.0)
    path = script(tmp_path / "prometheus", body)
    with pytest.raises(CommandError) as caught:
        find_program(PROGRAMS["prometheus"], path, {})
    assert told in str(caught.value)
    assert "--prometheus-bin" in str(caught.value)


def test_all_that_are_missing_are_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_PLACES", ())
    with pytest.raises(CommandError, match=r"Tempo was asked for.*\nGrafana was asked for") as told:
        find_programs(["tempo", "grafana"], {}, {"PATH": str(tmp_path)})
    assert told.value.exit_code == 1


def test_a_path_that_is_no_program_is_an_error_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for path in (tmp_path / "text", tmp_path / "missing"):
        with pytest.raises(CommandError) as caught:
            find_program(PROGRAMS["tempo"], str(path), {})
        assert caught.value.exit_code == 2
        assert str(path) in str(caught.value)


def test_what_is_installed_is_listed_without_running_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script(tmp_path / "bin" / "prometheus-alertmanager", f"touch {ran}")
    script(tmp_path / "bin" / "grafana", f"touch {ran}")
    found = find_installed({"PATH": str(tmp_path / "bin")})
    assert [each.name for each in found] == ["alertmanager", "grafana"]
    assert not ran.exists()


def test_programs_that_trace_do_not_wonder_about_the_variables() -> None:
    environ = {program.variable: "x" for program in PROGRAMS.values()}
    assert unknown_variables({**environ, "ROLLSCOPE_STATE_DIR": "x"}) == {}
    assert list(unknown_variables({"ROLLSCOPE_PROMETEUS": "x"})) == ["ROLLSCOPE_PROMETEUS"]
