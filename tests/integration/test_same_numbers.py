"""Every face of a run shows the same numbers: what the registry answers, each of them prints."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollscope.answers.encoding import encode_answer
from rollscope.answers.questions import QUESTIONS
from rollscope.cli.main import main
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

SAME: dict[str, tuple[dict[str, str], list[str]]] = {
    "doctor": ({"deep": "0"}, ["doctor", "--quick"]),
    "hotspots": ({"scope": "all", "by": "tool"}, ["hotspots", "--scope", "all", "--by", "tool"]),
    "phases": ({"scope": "1-2", "by": "detail"}, ["phases", "--scope", "1-2", "--by", "detail"]),
    "select": ({"filter": "ran>9s"}, ["compare", "--filter", "ran>9s"]),
    "sessions": (
        {"filter": "phase:toolcall", "sort": "-ran", "limit": "7"},
        ["sessions", "--scope", "all", "--filter", "phase:toolcall", "--sort=-ran", "--limit", "7"],
    ),
    "step": ({"step": "1"}, ["steps", "--step", "1"]),
    "steps": ({"last": "3"}, ["steps", "--last", "3"]),
    "stuck": ({}, ["stuck"]),
}
"""Question: its parameters, and the command that asks the same. The run comes first of all."""

WITHOUT_COMMAND = frozenset(QUESTIONS) - frozenset(SAME) - {"compare", "session"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run that is over, so that nothing depends on when it is asked."""
    folder = tmp_path_factory.mktemp("same") / "run"
    generate_run(folder, RunShape(steps=3, tasks_per_step=8, stuck_sessions=0))
    return folder


@pytest.fixture(scope="module")
def store(run: Path) -> Iterator[RunStore]:
    """Give the same run, opened."""
    with RunStore(run, threads=1) as store:
        yield store


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    """Give what a command prints as JSON."""
    main([*command, "--json"])
    return json.loads(capsys.readouterr().out)


def answered(store: RunStore, name: str, given: dict[str, str]) -> Any:
    """Give what the registry answers, as it is sent."""
    return json.loads(encode_answer(QUESTIONS[name].ask(store, given)))


def of_the_moment(answer: Any) -> Any:
    """Take away what differs between two looks at the same run: the time, and room on the disk."""
    if isinstance(answer, dict):
        return {
            key: of_the_moment(value)
            for key, value in answer.items()
            if key not in ("now_ns", "free_bytes")
        }
    return [of_the_moment(one) for one in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("name", SAME)
def test_a_command_prints_what_the_registry_answers(
    name: str, run: Path, store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    given, (verb, *options) = SAME[name]
    shown = printed(capsys, verb, str(run), *options)
    assert of_the_moment(shown) == of_the_moment(answered(store, name, given))


def test_one_session_is_the_same_in_both(
    run: Path, store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT session_id FROM sessions ORDER BY reward, session_id LIMIT 1"
    session = f"{store.query(sql)['session_id'][0].as_py():016x}"
    shown = printed(capsys, "show", str(run), session)
    assert of_the_moment(shown) == of_the_moment(answered(store, "session", {"session": session}))


def test_two_stretches_of_steps_compare_alike(
    run: Path, store: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, "compare", f"{run}@0", f"{run}@1-2")
    given = {"scope": "0", "other_scope": "1-2", "name": "step 0", "other_name": "step 1-2"}
    assert shown == answered(store, "compare", given)


def test_two_readers_answer_alike(run: Path, store: RunStore) -> None:
    with RunStore(run, threads=2) as other:
        for name in sorted(WITHOUT_COMMAND):
            if any(parameter.is_needed for parameter in QUESTIONS[name].parameters):
                continue
            first, second = answered(store, name, {}), answered(other, name, {})
            assert of_the_moment(first) == of_the_moment(second), name
