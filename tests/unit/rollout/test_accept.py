from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rollscope.rollout.accept import blocking, resolve_accept

HERE = "tests.unit.rollout.test_accept"


def keep_marked(trajectory: dict[str, Any]) -> Any:
    return trajectory.get("marked")


def ask(should_accept_fn: Any, trajectory: dict[str, Any] | None) -> bool:
    verdict = asyncio.run(resolve_accept(should_accept_fn)(trajectory))
    assert isinstance(verdict, bool)
    return verdict


@pytest.mark.parametrize("given", [keep_marked, f"{HERE}.keep_marked", f"{HERE}:keep_marked"])
def test_a_function_or_its_path_decides_and_its_answer_is_read_as_a_bool(given: Any) -> None:
    assert ask(given, {"marked": [1]})
    assert not ask(given, {"marked": []})


def test_without_a_function_all_are_kept_but_none() -> None:
    assert ask(None, {})
    assert not ask(None, None)


def test_the_function_is_not_asked_about_none() -> None:
    def fail(_trajectory: object) -> bool:
        raise AssertionError

    assert not ask(fail, None)


def test_an_async_function_is_awaited_rather_than_read_as_true() -> None:
    async def refuse(_trajectory: object) -> bool:
        return False

    assert not ask(refuse, {})


def test_only_marked_functions_run_in_a_thread() -> None:
    ran_in: list[threading.Thread] = []

    def note(_trajectory: object) -> bool:
        ran_in.append(threading.current_thread())
        return True

    class Note:
        @blocking
        def __call__(self, trajectory: object) -> bool:
            return note(trajectory)

    assert ask(note, {})
    assert ran_in.pop() is threading.current_thread()
    for marked in (blocking(lambda trajectory: note(trajectory)), Note()):
        assert ask(marked, {})
        assert ran_in.pop() is not threading.current_thread()


def test_errors_of_the_function_pass_on() -> None:
    with pytest.raises(KeyError, match="absent"):
        ask(lambda trajectory: trajectory["absent"], {})


def test_a_path_that_leads_nowhere_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"Failed to import should_accept_fn .*'no\.such'"):
        resolve_accept("no.such")


@pytest.mark.parametrize("given", [3, f"{HERE}.HERE"])
def test_what_cannot_be_called_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="must be a function or an import path"):
        resolve_accept(given)
