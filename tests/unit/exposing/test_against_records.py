"""What a run is shown to stand at, against its records counted one by one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from rollscope import Tracer
from rollscope.analysis.staleness import Versions
from rollscope.answers.hosts import hosts
from rollscope.answers.now import now
from rollscope.answers.steps import steps
from rollscope.answers.stuck import stuck
from rollscope.exposing import catalogue as ours
from rollscope.exposing.runs import RunExposition
from rollscope.metrics.families import Distribution
from rollscope.model.kinds import Kind, Status
from rollscope.store.embedded import RunStore
from rollscope.store.upkeep.merging import merge_segments
from rollscope.store.upkeep.retention import plan_removal, remove_segments
from rollscope.testing import generate_run
from tests.oracle import SHAPES, Oracle, family, nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rollscope.analysis.rows import SessionRow, SpanRow
    from rollscope.metrics.families import Exposed

Values = dict[tuple[str, ...], Any]
SECOND = 1e9


CHOSEN = ("usual", "skewed", "overlapping", "retried", "running", "without sessions", "empty")


@pytest.fixture(params=CHOSEN, name="opened")
def _opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[RunStore, Oracle]]:
    path = tmp_path / "run"
    truth = generate_run(path, SHAPES[request.param])
    with RunStore(path, now_ns=truth.end_ns, threads=1) as store:
        yield store, Oracle(path, truth.end_ns, store.offsets)


def test_counts_and_lengths_are_those_of_the_records(opened: tuple[RunStore, Oracle]) -> None:
    store, oracle = opened
    exposition = RunExposition("run")
    expected = _counted(oracle)
    fresh = _values(exposition.look(store))
    assert {name: fresh.get(name, {}) for name in expected} == expected
    assert store.seal()
    sealed = _values(exposition.look(store))
    assert {name: sealed.get(name, {}) for name in expected} == expected
    anew = _values(RunExposition("run").look(store))
    assert {name: anew.get(name, {}) for name in expected} == expected


@pytest.mark.parametrize("seals", [False, True])
def test_a_run_that_is_followed_comes_to_the_same(tmp_path: Path, seals: bool) -> None:
    # Of clocks that are off, more is learned as a run goes on, and waits between hosts change.
    shape = replace(SHAPES["retried"], clock_offsets_s=(0.0,))
    truth = generate_run(tmp_path / "whole", shape)
    logs = {log.name: log.read_bytes() for log in (tmp_path / "whole" / "log").iterdir()}
    growing = tmp_path / "growing"
    (growing / "log").mkdir(parents=True)
    exposition, shown = RunExposition("run"), []
    with RunStore(growing, now_ns=truth.end_ns, threads=1) as store:
        for part in (0.3, 0.6, 0.61, 1.0):
            for name, data in logs.items():
                (growing / "log" / name).write_bytes(data[: int(len(data) * part)])
            store.refresh()
            shown.append(_values(exposition.look(store)))
            if seals and part == 0.6:
                assert store.seal()
        expected = _counted(Oracle(growing, truth.end_ns, store.offsets))
    assert {name: shown[-1].get(name, {}) for name in expected} == expected
    counts = [sum(_of(looked, ours.SESSIONS_FINISHED).values()) for looked in shown]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_counters_stay_and_go_on_when_rows_are_retired_or_joined(tmp_path: Path) -> None:
    path, counts = tmp_path / "run", []
    exposition = RunExposition("run")
    tracer = Tracer(run="run", dir=tmp_path)

    def look(store: RunStore) -> None:
        store.refresh()
        shown = _values(exposition.look(store))
        started = sum(_of(shown, ours.SESSIONS_STARTED).values())
        ((lengths, _),) = _of(shown, ours.SESSION_DURATION).values()
        calls = sum(shown["rollscope_user_calls_total"].values())
        counts.append((started, sum(lengths), calls))

    def record() -> None:
        for number in range(10):
            with tracer.task(f"swe/{number}"), tracer.session():
                tracer.count("calls")
        tracer.flush()

    with tracer, RunStore(path, threads=1) as store:
        for _ in range(2):
            record()
            look(store)
            assert store.seal()
        assert merge_segments(store.sealer)
        look(store)
        assert remove_segments(store.sealer, plan_removal(store.sealer, excess_bytes=1)).segments
        look(store)
        record()
        look(store)
    assert counts == [(n, n, n) for n in (10, 20, 20, 20, 30)]


def test_what_happens_now_is_what_the_answers_say(opened: tuple[RunStore, Oracle]) -> None:
    store, _ = opened
    shown = _values(RunExposition("run").look(store))
    answer = now(store)
    phases: Counter[str] = Counter()
    for line in hosts(store).lines:
        phases.update(line.phases)
    assert {key[0]: count for key, count in _of(shown, ours.SESSIONS_IN_FLIGHT).items()} == phases
    judged = [one for one in stuck(store).rows if one.is_alarm]
    assert sum(_of(shown, ours.STUCK_SESSIONS).values()) == len(judged)
    oldest = max(_of(shown, ours.OLDEST_SESSION_AGE).values(), default=0)
    assert oldest == pytest.approx(answer.oldest.age_ns / SECOND)
    tokens = _of(shown, ours.TOKENS_PER_SECOND).get((), 0.0)
    assert tokens == pytest.approx(answer.tokens.rate)
    ended = [one.summary for one in steps(store).steps if not one.summary.is_open][-1:]
    tails = [one.bubble_ns / one.slot_ns if one.slot_ns else 0.0 for one in ended]
    assert list(_of(shown, ours.TAIL_RATIO).values()) == [pytest.approx(tail) for tail in tails]
    rewards = _of(shown, ours.REWARD)
    means = [one.mean_reward for one in ended if one.mean_reward is not None]
    assert bool(rewards) == bool(means)
    if len(rewards) == 1:
        assert list(rewards.values()) == [pytest.approx(mean) for mean in means]


def _of(shown: dict[str, Values], family_: Any) -> Values:
    return shown.get(family_.name, {})


def _values(exposed: Iterable[Exposed]) -> dict[str, Values]:
    """Give what is shown by name and labels, the run's left out."""
    found: dict[str, Values] = {}
    for family_, points in exposed:
        for point in points:
            value: Any = point.value
            if isinstance(value, Distribution):
                value = (list(value.counts), pytest.approx(value.total))
            assert point.labels[0] == "run"
            assert found.setdefault(family_.name, {}).setdefault(point.labels[1:], value) is value
    return found


def _counted(oracle: Oracle) -> dict[str, Values]:
    """Count the records in the plainest way."""
    ended = [one for one in oracle.sessions if one.end_ns is not None]
    verdicts = {one.span_id: _first_verdict(oracle, one) for one in ended}
    finished: Counter[tuple[str, ...]] = Counter()
    unjudged: Counter[tuple[str, ...]] = Counter(
        {(one.family or "",): 0 for one in oracle.sessions}
    )
    for one in ended:
        verdict = verdicts[one.span_id]
        if verdict is None:
            unjudged[one.family or "",] += 1
        else:
            finished[one.family or "", *verdict] += 1
    phases = [one for one in oracle.spans if one.kind is Kind.PHASE]
    return {
        ours.SESSIONS_STARTED.name: Counter[tuple[str, ...]](
            (one.family or "",) for one in oracle.sessions
        ),
        ours.SESSIONS_FINISHED.name: finished,
        ours.SESSIONS_UNJUDGED.name: unjudged,
        ours.SESSION_DURATION.name: _lengths(
            ((one.family or "",), one) for one in ended if one.is_measured
        ),
        ours.PHASE_DURATION.name: _lengths(
            ((family(oracle.known[one.span_id].record) or "", one.name), one)
            for one in phases
            if one.end_ns is not None and one.status is not Status.LOST
        ),
        ours.QUEUE_WAIT.name: _histogram(
            [nanoseconds(one.attrs["queue_wait_s"]) or 0 for one in ended]
        ),
        **_consumed(oracle, ended),
        ours.LANE_STATE.name: _states(oracle),
        **_steps(oracle),
    }


def _first_verdict(oracle: Oracle, session: SessionRow) -> tuple[str, str] | None:
    record = oracle.known[session.span_id].record
    told = [(record.outcome, record.reason)]
    told += [
        (f.facts.get("outcome"), f.facts.get("reason"))
        for f in oracle.facts.get(session.span_id, [])
    ]
    for outcome, reason in told:
        if outcome is not None:
            return str(outcome), str(reason or "").partition(":")[0]
    return None


def _consumed(oracle: Oracle, ended: Sequence[SessionRow]) -> dict[str, Values]:
    versions = Versions(row for row, _ in oracle.events)
    waits, ages = [], []
    for one in ended:
        used = [
            fact.time_ns
            for fact in oracle.facts.get(one.span_id, [])
            if "consumed_step" in fact.facts
        ]
        if used:
            assert one.end_ns is not None
            waits.append(max(used[0] - one.end_ns, 0))
            if one.version_start is not None and versions:
                ages.append(versions.lag(one.version_start, used[0]))
    return {
        ours.CONSUME_WAIT.name: _histogram(waits),
        ours.STALENESS.name: _histogram(ages, ours.AGE_BOUNDS, unit=1.0),
    }


def _states(oracle: Oracle) -> Values:
    spent: Values = {}
    for one in oracle.spans:
        if one.kind is Kind.STATE and one.end_ns is not None and one.status is not Status.LOST:
            key = one.lane or "", one.name
            spent[key] = spent.get(key, 0) + one.end_ns - one.start_ns
    return {key: pytest.approx(value / SECOND) for key, value in spent.items()}


def _steps(oracle: Oracle) -> dict[str, Values]:
    known = [one for one in oracle.spans if one.kind is Kind.STEP and one.step is not None]
    lengths = [one.end_ns - one.start_ns for one in known if one.end_ns is not None]
    return {
        ours.STEP.name: {(): max(one.step or 0 for one in known)} if known else {},
        ours.STEPS.name: {(): len(lengths)} if known else {},
        ours.STEP_DURATION.name: _histogram(lengths),
    }


def _lengths(spans: Iterable[tuple[tuple[str, ...], SpanRow | SessionRow]]) -> Values:
    by_key: dict[tuple[str, ...], list[int]] = {}
    for key, span in spans:
        assert span.end_ns is not None
        by_key.setdefault(key, []).append(span.end_ns - span.start_ns)
    return {key: _histogram(lengths)[()] for key, lengths in by_key.items()}


def _histogram(
    values: Sequence[int], bounds: Sequence[float] = ours.TIME_BOUNDS, unit: float = SECOND
) -> Values:
    if not values:
        return {}
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[next((n for n, bound in enumerate(bounds) if value <= bound * unit), -1)] += 1
    return {(): (counts, pytest.approx(sum(values) / unit))}
