"""Steps that are long over are judged once, and anew when more is heard of them."""

from pathlib import Path
from typing import Any

import pytest

from rollscope.answers import facts
from rollscope.answers.encoding import encode_answer
from rollscope.answers.scope import StepScope
from rollscope.answers.steps import steps
from rollscope.instrument.tracer import Tracer
from rollscope.model.refs import span_hex
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run
from tests.oracle import SECOND


@pytest.fixture
def run(tmp_path: Path) -> Path:
    generate_run(tmp_path / "run", RunShape(steps=5, dying_process=False, stuck_sessions=0))
    return tmp_path / "run"


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note which steps are looked at anew."""
    first: list[int] = []
    gather = facts.gather_steps

    def noting(source: Any, low: int, high: int, **given: Any) -> Any:
        first.extend(range(low, high + 1))
        return gather(source, low, high, **given)

    monkeypatch.setattr("rollscope.answers.steps.gather_steps", noting)
    return first


def test_a_second_look_at_steps_that_are_over_gathers_nothing(
    run: Path, gathered: list[int]
) -> None:
    with RunStore(run, threads=1) as store:
        before = encode_answer(steps(store))
        assert gathered == [0, 1, 2, 3, 4]
        gathered.clear()
        assert encode_answer(steps(store)) == before
        assert gathered == []


def test_steps_that_were_only_outlined_are_judged_when_they_are_asked_for(
    run: Path, gathered: list[int]
) -> None:
    with RunStore(run, threads=1) as store, RunStore(run, threads=1) as fresh:
        steps(store, StepScope(first=3, last=4))
        later = encode_answer(steps(store))
        assert later == encode_answer(steps(fresh))
        gathered.clear()
        assert encode_answer(steps(store, StepScope(first=3, last=4))) == encode_answer(
            steps(fresh, StepScope(first=3, last=4))
        )
        assert gathered == []


def test_a_late_fact_has_its_step_judged_again(run: Path, gathered: list[int]) -> None:
    with RunStore(run, threads=1) as store:
        before = steps(store)
        ids = store.query("SELECT session_id FROM sessions WHERE charged_step = 3 LIMIT 1")
        session = ids["session_id"][0].as_py()
        tracer = Tracer(run=run.name, dir=str(run.parent))
        tracer.annotate(f"00-{'1' * 32}-{span_hex(session)}-01", consumed_step=4)
        tracer.shutdown()
        gathered.clear()
        assert store.refresh()
        after = steps(store)
    assert gathered
    moved = [one.summary.sessions for one in after.steps]
    was = [one.summary.sessions for one in before.steps]
    assert moved == [*was[:3], was[3] - 1, was[4] + 1]


def test_a_step_that_has_just_ended_is_looked_at_again(tmp_path: Path, gathered: list[int]) -> None:
    truth = generate_run(tmp_path / "run", RunShape(steps=3, dying_process=False, stuck_sessions=0))
    with RunStore(tmp_path / "run", threads=1, now_ns=truth.end_ns + SECOND) as store:
        steps(store)
        gathered.clear()
        steps(store)
        assert gathered[-1] == 2
