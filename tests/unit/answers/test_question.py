"""Parameters of questions: what is wrong with one is told in a sentence, before any work."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollscope.answers.question import Given, Parameter, Question
from rollscope.answers.questions import QUESTIONS
from rollscope.errors import CommandError, FilterError
from rollscope.store.embedded import RunStore


class Echo(msgspec.Struct):
    """What was asked."""

    said: Any


def question(parameter: Parameter, read: str) -> Question:
    """Make a question that answers with its parameter, as `Given` reads it."""
    return Question(
        name="echo",
        doc="",
        parameters=(parameter,),
        answer=Echo,
        make=lambda _, given: Echo(getattr(given, read)(parameter.name)),
    )


NUMBER = Parameter(name="limit", kind="number", default="5", least=1, most=9, doc="how many")


def test_what_is_not_given_has_its_default(running: RunStore) -> None:
    assert question(NUMBER, "number").ask(running) == Echo(5)
    assert question(NUMBER, "number").ask(running, {"limit": "7"}) == Echo(7)


@pytest.mark.parametrize("text", ["0", "10", "-1", "x", "1.5", "٣", "9" * 40])
def test_a_number_out_of_range_is_refused_with_the_range(running: RunStore, text: str) -> None:
    with pytest.raises(CommandError, match=r"limit is .*; it must be a whole number") as error:
        question(NUMBER, "number").ask(running, {"limit": text})
    assert error.value.exit_code == 2


def test_an_unknown_parameter_says_which_there_are(running: RunStore) -> None:
    with pytest.raises(CommandError, match="echo takes no parameter 'limt'; it takes limit"):
        question(NUMBER, "number").ask(running, {"limt": "1"})
    with pytest.raises(CommandError, match="stuck takes no parameter 'x'; it takes no parameters"):
        QUESTIONS["stuck"].ask(running, {"x": "1"})


def test_a_parameter_that_is_needed_says_what_it_is(running: RunStore) -> None:
    with pytest.raises(CommandError, match="session needs session: its id"):
        QUESTIONS["session"].ask(running)


def test_a_choice_names_the_choices(running: RunStore) -> None:
    with pytest.raises(CommandError, match="by is 'planet'; it must be one of host, replica"):
        QUESTIONS["hosts"].ask(running, {"by": "planet"})


@pytest.mark.parametrize(("text", "said"), [("1", True), ("no", False), ("TRUE", True)])
def test_a_flag_is_yes_or_no(running: RunStore, text: str, said: bool) -> None:
    flag = Parameter(name="deep", kind="flag", default="0", doc="")
    assert question(flag, "flag").ask(running, {"deep": text}) == Echo(said)
    with pytest.raises(CommandError, match="deep is 'maybe'; it must be 1 or 0"):
        question(flag, "flag").ask(running, {"deep": "maybe"})


def test_a_scope_and_a_filter_that_cannot_be_read_are_refused(running: RunStore) -> None:
    with pytest.raises(CommandError, match="is no scope"):
        QUESTIONS["phases"].ask(running, {"scope": "7-x"})
    with pytest.raises(FilterError):
        QUESTIONS["sessions"].ask(running, {"filter": "ran>"})


def test_one_step_is_asked_for_by_its_number_or_as_the_latest(running: RunStore) -> None:
    step = Parameter(name="step", kind="scope", default="latest", doc="")
    assert question(step, "step").ask(running) == Echo(2)
    assert question(step, "step").ask(running, {"step": "1"}) == Echo(1)
    with pytest.raises(CommandError, match="must be one step"):
        question(step, "step").ask(running, {"step": "0-1"})
    with pytest.raises(CommandError, match="has no step 9"):
        question(step, "step").ask(running, {"step": "9"})


def test_another_run_is_opened_only_where_that_is_possible(
    running: RunStore, over: RunStore
) -> None:
    asked = {"other": "elsewhere"}
    with pytest.raises(CommandError, match="no other run can be opened"):
        QUESTIONS["compare"].ask(running, asked)
    opened: list[str] = []

    def opener(name: str) -> RunStore:
        opened.append(name)
        return over

    answer = QUESTIONS["compare"].ask(running, asked, opener)
    assert opened == ["elsewhere"]
    assert answer.second_sessions > 0  # type: ignore[attr-defined]


def test_given_reads_without_a_default(running: RunStore, tmp_path: Path) -> None:
    time = Parameter(name="since_ns", kind="time", default="", doc="")
    given = Given(running, {"since_ns": time}, {"since_ns": ""})
    assert given.maybe_number("since_ns") is None
