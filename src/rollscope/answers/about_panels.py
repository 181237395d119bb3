"""Questions behind single panels: of a step, of a list of sessions, and of one session."""

from typing import Final

from rollscope.analysis.staircase import Staircase
from rollscope.answers.durations import Durations, durations
from rollscope.answers.facets import Facets, facets
from rollscope.answers.groups import GROUP_SORT_KEYS, Groups, list_groups
from rollscope.answers.parameters import ENDED, FILTER, LATEST, SCOPE, STEP, number, text
from rollscope.answers.payloads import Payloads, session_payloads
from rollscope.answers.question import Given, Question
from rollscope.answers.scatter import Scatter, scatter
from rollscope.answers.services import Services, services
from rollscope.answers.staircase import step_staircase
from rollscope.answers.tasks import TASK_SORT_KEYS, Tasks, list_tasks
from rollscope.answers.turns import SessionTurns, session_turns
from rollscope.store.embedded import RunStore

__all__ = ["ABOUT_PANELS"]

_SESSION: Final = text("session", None, "its id, or task and sample as task#3")
_LIMIT: Final = number("limit", 50, 1000, "how many")
_OFFSET: Final = number("offset", 0, 100_000_000, "how many to leave out before them", least=0)


def _tasks(source: RunStore, given: Given) -> Tasks:
    return list_tasks(
        source,
        given.scope("scope"),
        given.text("filter"),
        given.text("sort"),
        given.number("limit"),
        given.number("offset"),
    )


def _groups(source: RunStore, given: Given) -> Groups:
    return list_groups(
        source,
        given.scope("scope"),
        given.text("sort"),
        given.number("limit"),
        given.number("offset"),
    )


ABOUT_PANELS: Final[tuple[Question, ...]] = (
    Question(
        name="durations",
        doc="how long sessions and phases took: heat map, histograms and points",
        parameters=(LATEST, FILTER),
        answer=Durations,
        make=lambda source, given: durations(source, given.scope("scope"), given.text("filter")),
    ),
    Question(
        name="facets",
        doc="sessions under a filter by outcome, step, host, family, phase, reason and attempt",
        parameters=(SCOPE, FILTER, *ENDED),
        answer=Facets,
        make=lambda source, given: facets(
            source, given.scope("scope"), given.text("filter"), given.ended()
        ),
    ),
    Question(
        name="groups",
        doc="groups with equal rewards, incomplete ones, and their slowest members",
        parameters=(
            LATEST,
            text("sort", "-ratio", f"{', '.join(GROUP_SORT_KEYS)}; - turns it"),
            _LIMIT,
            _OFFSET,
        ),
        answer=Groups,
        make=_groups,
    ),
    Question(
        name="payloads",
        doc="what was said in a session, as far as it was kept",
        parameters=(_SESSION, text("full", "", "one message to give whole, as span,index")),
        answer=Payloads,
        make=lambda source, given: session_payloads(
            source, given.text("session"), given.text("full")
        ),
    ),
    Question(
        name="scatter",
        doc="sessions by when they ended and how long they ran",
        parameters=(SCOPE, FILTER, *ENDED),
        answer=Scatter,
        make=lambda source, given: scatter(
            source, given.scope("scope"), given.text("filter"), given.ended()
        ),
    ),
    Question(
        name="services",
        doc="each tool, environment and reward function: queueing, service, errors",
        parameters=(LATEST,),
        answer=Services,
        make=lambda source, given: services(source, given.scope("scope")),
    ),
    Question(
        name="staircase",
        doc="the tail of a step: slots in flight, and its sessions by their ends",
        parameters=(STEP,),
        answer=Staircase,
        make=lambda source, given: step_staircase(source, given.step("step")),
    ),
    Question(
        name="tasks",
        doc="which tasks are slow or fail again and again",
        parameters=(
            SCOPE,
            FILTER,
            text("sort", "-total", f"{', '.join(TASK_SORT_KEYS)}; - turns it"),
            _LIMIT,
            _OFFSET,
        ),
        answer=Tasks,
        make=_tasks,
    ),
    Question(
        name="turns",
        doc="the turns of a session, its attempts, versions and engine times",
        parameters=(_SESSION,),
        answer=SessionTurns,
        make=lambda source, given: session_turns(source, given.text("session")),
    ),
)
