"""Questions about steps: which was slow, why, and what changed."""

from typing import Final

import msgspec

from rollscope.answers.compare import Comparison, compare_runs
from rollscope.answers.hotspots import HotspotAnswer, HotspotGrouping, find_hotspots
from rollscope.answers.parameters import LAST_STEPS, LATEST, SCOPE, STEP, choice, flag, number, text
from rollscope.answers.phases import Grouping, Phases, phases
from rollscope.answers.question import Given, Question
from rollscope.answers.scope import resolve_scope
from rollscope.answers.steps import StepAnswer, Steps, one_step, steps
from rollscope.answers.stepseries import StepSeries, step_series
from rollscope.store.embedded import RunStore

__all__ = ["ABOUT_STEPS"]


def _compare(source: RunStore, given: Given) -> Comparison:
    other = given.other_run("other")
    second = resolve_scope(other, given.text("other_scope"))
    names = given.text("name"), given.text("other_name")
    return compare_runs(source, given.scope("scope"), other, second, names)


def _steps(source: RunStore, given: Given) -> Steps:
    scope = given.scope("scope") if given.text("scope") else None
    return steps(source, scope, most=given.number("last"))


def _step_series(source: RunStore, given: Given) -> StepSeries:
    scope = given.scope("scope") if given.text("scope") else None
    return step_series(source, scope, most=given.number("last"))


ABOUT_STEPS: Final[tuple[Question, ...]] = (
    Question(
        name="compare",
        doc="what changed between two runs, or two stretches of steps",
        parameters=(
            SCOPE,
            text("other", "", "the other run; none: this"),
            msgspec.structs.replace(SCOPE, name="other_scope"),
            text("name", "A", "how to call this side"),
            text("other_name", "B", "how to call that"),
        ),
        answer=Comparison,
        make=_compare,
    ),
    Question(
        name="hotspots",
        doc="where session time goes, by span path",
        parameters=(
            LATEST,
            choice("by", HotspotGrouping, "path", "how rows are grouped"),
            flag("outside", "what is not part of a session"),
        ),
        answer=HotspotAnswer,
        make=lambda source, given: find_hotspots(
            source,
            given.scope("scope"),
            given.choice("by"),
            outside=given.flag("outside"),
        ),
    ),
    Question(
        name="phases",
        doc="how long phases take, and which errors end spans",
        parameters=(SCOPE, choice("by", Grouping, "name", "what to group phases by")),
        answer=Phases,
        make=lambda source, given: phases(source, given.scope("scope"), given.choice("by")),
    ),
    Question(
        name="step",
        doc="why a step took as long as it did",
        parameters=(STEP,),
        answer=StepAnswer,
        make=lambda source, given: one_step(source, given.step("step")),
    ),
    Question(
        name="step_series",
        doc="errors, weight sync and busy slots from step to step",
        parameters=(LAST_STEPS, number("last", 50, 200, "how many, where no steps are given")),
        answer=StepSeries,
        make=_step_series,
    ),
    Question(
        name="steps",
        doc="the steps with their verdicts, and what changed",
        parameters=(LAST_STEPS, number("last", 10, 200, "how many, where no steps are given")),
        answer=Steps,
        make=_steps,
    ),
)
