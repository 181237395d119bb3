from __future__ import annotations

from pathlib import Path

import pytest

from rollscope.analysis.filters import parse_filter
from rollscope.answers.compare import compare_selection, select_sessions
from rollscope.answers.questions import QUESTIONS
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import list_sessions
from rollscope.answers.steps import StepAnswer
from rollscope.instrument.tracer import Tracer
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run of a few steps."""
    path = tmp_path_factory.mktemp("selecting") / "run"
    shape = RunShape(steps=3, dying_process=False, stuck_sessions=0, late_share=0.3)
    generate_run(path, shape)
    return path


def test_a_stretch_of_starts_narrows_the_chosen_and_widens_the_rest(run: Path) -> None:
    scope, expression = StepScope(first=1, last=1), parse_filter("ran>1s")
    with RunStore(run) as store:
        held, rest = select_sessions(store, scope, expression)
        starts = sorted(one.start_ns for one in held)
        middle = starts[len(starts) // 2]
        early = compare_selection(store, scope, expression, (None, middle))
        late = compare_selection(store, scope, expression, (middle, None))
        both = compare_selection(store, scope, expression, (starts[0], starts[-1]))
    before = sum(start < middle for start in starts)
    everyone = len(held) + len(rest)
    assert 0 < before < len(held)
    assert (early.chosen, early.rest) == (before, everyone - before)
    assert (late.chosen, late.rest) == (len(held) - before, everyone - len(held) + before)
    assert both.chosen == sum(start < starts[-1] for start in starts)


def test_the_step_of_a_filter_is_the_one_that_consumed_it_where_that_is_known(run: Path) -> None:
    def ids(store: RunStore, scope: StepScope, text: str) -> set[int]:
        return {one.row.span_id for one in list_sessions(store, scope, text, limit=1000).sessions}

    with RunStore(run) as store:
        own = ids(store, StepScope(first=1, last=1), "")
        assert ids(store, StepScope(), "step:1") == own
        assert ids(store, StepScope(), 'step:1 "/"') == own  # the rows are looked at one by one
        late = ids(store, StepScope(), "step:1 dispatched:0")
        assert late == ids(store, StepScope(), "consumed:1 dispatched:0") != set()


def test_the_question_takes_the_stretch_as_text(run: Path) -> None:
    with RunStore(run) as store:
        whole = QUESTIONS["select"].ask(store, {"scope": "1", "filter": "ran>1s"})
        none = QUESTIONS["select"].ask(store, {"scope": "1", "filter": "ran>1s", "to_ns": "1"})
    assert whole.chosen > 0  # type: ignore[attr-defined]
    assert none.chosen == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(("step", "around"), [(0, (None, 1)), (1, (0, 2)), (2, (1, None))])
def test_a_step_names_the_steps_beside_it(
    run: Path, step: int, around: tuple[int | None, int | None]
) -> None:
    with RunStore(run) as store:
        answer = QUESTIONS["step"].ask(store, {"step": str(step)})
    assert isinstance(answer, StepAnswer)
    assert (answer.previous, answer.following) == around


def test_a_selection_is_held_against_another(run: Path) -> None:
    scope = StepScope()
    chosen, others = parse_filter("step:1"), parse_filter("step:0")
    with RunStore(run) as store:
        answer = compare_selection(store, scope, chosen, against=others)
        sizes = [len(select_sessions(store, scope, one)[0]) for one in (chosen, others)]
    assert [answer.chosen, answer.rest] == sizes
    told = {row.column for row in answer.differences.rows}
    assert not told & {"step", "attr.consumed_step"}


def test_what_they_were_chosen_by_is_not_told_under_another_name(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    with Tracer(run="run", dir=tmp_path, clock=clock) as tracer:
        for number in range(60):
            with tracer.session(execution_s=number, queue_wait_s=0.1, luck=number) as session:
                clock.advance(number)
                session.set(reward=number / 60, turns=number)
    with RunStore(tmp_path / "run") as store:

        def told(text: str) -> set[str]:
            rows = compare_selection(store, StepScope(), parse_filter(text)).differences.rows
            return {name for row in rows for name in (row.column, *row.alike)}

        everything = {"reward", "attr.reward", "turns", "attr.turns", "attr.execution_s"}
        everything |= {"attr.luck"}
        assert told("attr.luck>=30") == everything - {"attr.luck"}
        assert told("reward>=0.5") == everything - {"reward", "attr.reward"}
        assert told("attr.turns>=30") == everything - {"turns", "attr.turns"}
        assert told("ran>=30s") == everything - {"attr.execution_s"}


@pytest.mark.parametrize("name", ["sessions", "facets", "scatter"])
def test_a_stretch_of_ends_narrows_what_is_listed(run: Path, name: str) -> None:
    def count(store: RunStore, **given: str) -> int:
        answer = QUESTIONS[name].ask(store, given)
        return int(getattr(answer, "matched", None) or answer.points.of)  # type: ignore[attr-defined]

    with RunStore(run) as store:
        points = QUESTIONS["scatter"].ask(store).points  # type: ignore[attr-defined]
        middle = str(points.end_ns[points.of // 3])
        before = sum(end < int(middle) for end in points.end_ns)
        assert count(store, ended_to_ns=middle) == before
        assert count(store, ended_from_ns=middle) == points.of - before
        assert count(store, filter="ran>0ms", ended_to_ns=middle) == before
