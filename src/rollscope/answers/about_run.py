"""Questions about the run as a whole, and about this moment."""

from typing import Final

from rollscope.answers.doctor import Checkup, examine
from rollscope.answers.enginehistory import EngineHistory, engine_history
from rollscope.answers.errors import Errors, errors
from rollscope.answers.health import Health, health
from rollscope.answers.hosts import HostGrouping, Hosts, hosts
from rollscope.answers.now import Now, now
from rollscope.answers.overview import Overview, overview
from rollscope.answers.parameters import SCOPE, SINCE, UNTIL, choice, flag, moment, number, text
from rollscope.answers.question import Given, Question
from rollscope.answers.series import Axis, Metrics, Series, list_metrics, series
from rollscope.answers.stuck import Stuck, stuck
from rollscope.store.embedded import RunStore

__all__ = ["ABOUT_RUN"]


def _series(source: RunStore, given: Given) -> Series:
    return series(
        source,
        given.text("name"),
        given.choice("axis"),
        points=given.number("points"),
        since_ns=given.maybe_number("since_ns"),
        until_ns=given.maybe_number("until_ns"),
    )


def _engines(source: RunStore, given: Given) -> EngineHistory:
    return engine_history(
        source,
        given.text("replica"),
        points=given.number("points"),
        since_ns=given.maybe_number("since_ns"),
        until_ns=given.maybe_number("until_ns"),
    )


ABOUT_RUN: Final[tuple[Question, ...]] = (
    Question(
        name="doctor",
        doc="what is wrong with the run, and what to do about it",
        parameters=(flag("deep", "read every segment whole"),),
        answer=Checkup,
        make=lambda source, given: examine(source, deep=given.flag("deep")),
    ),
    Question(
        name="engines",
        doc="how inference engines did over time, where they are asked for their metrics",
        parameters=(
            text("replica", "", "only this one, if it is known"),
            number("points", 120, 1000, "how many stretches of time"),
            moment("since_ns", "from when; a quarter of an hour before the end if not given"),
            moment("until_ns", "until when; now if not given"),
        ),
        answer=EngineHistory,
        make=_engines,
    ),
    Question(
        name="errors",
        doc="which errors end spans, where, since when",
        parameters=(SCOPE, SINCE),
        answer=Errors,
        make=lambda source, given: errors(
            source, given.scope("scope"), since_ns=given.maybe_number("since_ns")
        ),
    ),
    Question(
        name="health",
        doc="whether the run can be trusted: drops, clocks, silence, disk",
        answer=Health,
        make=lambda source, _: health(source),
    ),
    Question(
        name="hosts",
        doc="how each host or replica is doing now",
        parameters=(choice("by", HostGrouping, "host", "what a line is"),),
        answer=Hosts,
        make=lambda source, given: hosts(source, given.choice("by")),
    ),
    Question(
        name="metrics",
        doc="which metrics are recorded",
        answer=Metrics,
        make=lambda source, _: list_metrics(source),
    ),
    Question(
        name="now",
        doc="how the run is doing: what is in flight, what is stuck, who waits",
        parameters=(
            number("bins", 900, 900, "moments of the series over fifteen minutes", least=60),
        ),
        answer=Now,
        make=lambda source, given: now(source, bins=given.number("bins")),
    ),
    Question(
        name="overview",
        doc="the run at one glance: how far it is, and whether it is complete",
        answer=Overview,
        make=lambda source, _: overview(source),
    ),
    Question(
        name="series",
        doc="one metric over time, or from step to step",
        parameters=(
            text("name", None, "which metric"),
            choice("axis", Axis, "time", "along what"),
            number("points", 300, 1000, "how many stretches of time"),
            SINCE,
            UNTIL,
        ),
        answer=Series,
        make=_series,
    ),
    Question(
        name="stuck",
        doc="which rollouts are stuck right now, in which phase, at which line",
        answer=Stuck,
        make=lambda source, _: stuck(source),
    ),
)
