"""Points of the catalogue's families, from sums and from what a run does now."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from statistics import fmean
from typing import Final

from rollscope.exposing import catalogue as ours
from rollscope.exposing.current import Flight, LastStep, Member
from rollscope.exposing.histograms import Histogram
from rollscope.exposing.labels import Caps
from rollscope.exposing.spansums import SpanSums
from rollscope.exposing.sums import Sums
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point

__all__ = ["Pointer"]

_SECOND: Final = 1e9
_WAITS: Final = {
    "queue": ours.QUEUE_WAIT,
    "runner": ours.RUNNER_WAIT,
    "post": ours.POST_WAIT,
    "consume": ours.CONSUME_WAIT,
}
_METRIC: Final = "metric"
_OVERLOAD: Final = frozenset({"overload", "no_memory", "not_encodable", "too_large"})
"""Reasons for which records of metrics are dropped like all others; the rest are refusals."""


class Pointer:
    """Makes the points of one run."""

    def __init__(self, run: str, caps: Caps) -> None:
        self._run = run
        self._caps = caps

    def sums(self, sums: Sums) -> list[Exposed]:
        """Show what has been added up."""
        words, spans = sums.families.words, sums.spans
        verdicts = sums.verdicts
        finished = (
            ((words[family], *verdicts.words.words[verdict]), count)
            for (family, verdict), count in verdicts.finished.items()
        )

        def by_family(counts: Counter[int]) -> dict[tuple[str, ...], float]:
            return {(words[one],): counts[one] for one, count in spans.started.items() if count}

        return [
            self.count(ours.SESSIONS_STARTED, by_family(spans.started)),
            self.count(ours.SESSIONS_FINISHED, _added(finished)),
            self.count(ours.SESSIONS_UNJUDGED, by_family(verdicts.unjudged())),
            self.count(ours.TOKENS, _tokens(spans)),
            self.count(ours.STEP, {(): max(spans.steps)} if spans.steps else {}),
            self.count(
                ours.LANE_STATE, {key: spent / _SECOND for key, spent in spans.states.items()}
            ),
            *self._lengths(sums),
        ]

    def _lengths(self, sums: Sums) -> list[Exposed]:
        words, spans, consumption = sums.families.words, sums.spans, sums.consumption
        waits = {**spans.waits.by_key, "consume": consumption.waits.by_key.get("")}
        steps = spans.step_lengths()
        ended = 0 if steps is None else int(steps.counts.sum())
        return [
            self.lengths(
                ours.SESSION_DURATION, {(words[f],): h for f, h in spans.sessions.by_key.items()}
            ),
            self.lengths(
                ours.PHASE_DURATION,
                {(words[f], name): one for (f, name), one in spans.phases.by_key.items()},
            ),
            *(self.maybe_lengths(family, waits.get(wait)) for wait, family in _WAITS.items()),
            self.maybe_lengths(ours.STALENESS, consumption.ages.by_key.get(""), unit=1.0),
            self.maybe_lengths(ours.STEP_DURATION, steps),
            self.count(ours.STEPS, {(): ended} if spans.steps else {}),
        ]

    def flight(self, flight: Flight, phases: Iterable[str]) -> list[Exposed]:
        """Show the open sessions; phases that were open once go on, at 0."""
        known = [*flight.phases, *(name for name in phases if name not in flight.phases)]
        return [
            self.count(ours.SESSIONS_IN_FLIGHT, {(name,): flight.phases[name] for name in known}),
            self.count(ours.SESSIONS_QUEUED, {(): flight.queued}),
            self.count(
                ours.OLDEST_SESSION_AGE,
                {(name,): flight.oldest_ns.get(name, 0) / _SECOND for name in known},
                join=max,
            ),
            self.count(ours.STUCK_SESSIONS, {(name,): flight.stuck[name] for name in known}),
        ]

    def last_step(self, last: LastStep) -> list[Exposed]:
        """Show the last step that ended."""
        return [
            self.count(
                ours.REWARD,
                {(family,): mean for family, mean in last.rewards.items()},
                join=fmean,
            ),
            self.maybe(ours.TAIL_RATIO, last.tail),
        ]

    def members(self, members: Iterable[Member]) -> Exposed:
        """Show the processes."""
        counted = Counter[tuple[str, ...]]((one.role, one.status) for one in members)
        return self.count(ours.PROCESSES, counted)

    def lags(self, longest_ns: Mapping[tuple[str, str], int]) -> Exposed:
        """Show how long event loops were blocked, by role and rank."""
        lags_s: dict[tuple[str, ...], float] = {
            key: longest / _SECOND for key, longest in longest_ns.items()
        }
        return self.count(ours.EVENT_LOOP_LAG, lags_s, join=max)

    def targets(self, up: Mapping[str, bool]) -> Exposed:
        """Show which replicas answer."""
        return self.count(
            ours.TARGET_UP, {(name,): int(is_up) for name, is_up in up.items()}, join=min
        )

    def drops(self, drops: Mapping[str, int], refused: Mapping[str, int]) -> list[Exposed]:
        """Show what was dropped, and what was refused by reason.

        Args:
            drops: What processes dropped, by kind and reason with a dot between them.
            refused: What is not shown as it was recorded, by reason.
        """
        dropped: Counter[tuple[str, ...]] = Counter()
        refusals: Counter[tuple[str, ...]] = Counter()
        for what, count in drops.items():
            kind, _, reason = what.partition(".")
            if kind == _METRIC and reason not in _OVERLOAD:
                refusals[(reason,)] += count
            else:
                dropped[kind, reason] += count
        for reason, count in refused.items():
            refusals[(reason,)] += count
        return [self.count(ours.DROPPED, dropped), self.count(ours.METRIC_REFUSALS, refusals)]

    def maybe(self, family: Family, value: float | None) -> Exposed:
        """Show one number, if there is one."""
        return self.count(family, {} if value is None else {(): value})

    def count(
        self,
        family: Family,
        values: Mapping[tuple[str, ...], float],
        join: Callable[[list[float]], float] = sum,
    ) -> Exposed:
        """Show numbers by labels, those that share the label `other` joined."""
        admitted: dict[tuple[str, ...], list[float]] = {}
        is_counter = family.kind is FamilyKind.COUNTER
        for labels, value in values.items():
            # What a gauge stands at says nothing of how many records are behind it.
            key = self._admit(family, labels, partial(int, value if is_counter else 1))
            admitted.setdefault(key, []).append(value)
        return Exposed(
            family,
            [
                Point((self._run, *key), given[0] if len(given) == 1 else join(given))
                for key, given in admitted.items()
            ],
        )

    def lengths(
        self, family: Family, values: Mapping[tuple[str, ...], Histogram], unit: float = _SECOND
    ) -> Exposed:
        """Show histograms by labels."""
        added: dict[tuple[str, ...], Distribution] = {}
        for labels, one in values.items():
            admitted = self._admit(family, labels, partial(_weigh, one))
            stands = one.stand(unit)
            known = added.get(admitted)
            added[admitted] = stands if known is None else _joined(known, stands)
        return Exposed(family, [Point((self._run, *key), one) for key, one in added.items()])

    def maybe_lengths(
        self, family: Family, value: Histogram | None, unit: float = _SECOND
    ) -> Exposed:
        """Show one histogram, if there is one."""
        return self.lengths(family, {} if value is None else {(): value}, unit)

    def _admit(
        self, family: Family, labels: tuple[str, ...], weigh: Callable[[], int]
    ) -> tuple[str, ...]:
        names = family.labels[1:]
        return tuple(
            self._caps.admit(family.name, name, value, weigh)
            for name, value in zip(names, labels, strict=True)
        )


def _weigh(histogram: Histogram) -> int:
    return int(histogram.counts.sum())


def _added(pairs: Iterable[tuple[tuple[str, ...], int]]) -> dict[tuple[str, ...], float]:
    added: dict[tuple[str, ...], float] = {}
    for key, value in pairs:
        added[key] = added.get(key, 0) + value
    return added


def _joined(one: Distribution, other: Distribution) -> Distribution:
    counts = [a + b for a, b in zip(one.counts, other.counts, strict=True)]
    return Distribution(counts, one.total + other.total, {**one.exemplars, **other.exemplars})


def _tokens(spans: SpanSums) -> dict[tuple[str, ...], float]:
    """Give what phases told of, or sessions where no phase tells: both would count twice."""
    kind = "phase" if any(kind == "phase" for kind, _ in spans.tokens) else "session"
    return {(way,): count for (teller, way), count in spans.tokens.items() if teller == kind}
