"""What is said of sessions, against counting by hand, slowly and with nothing clever in it."""

import math
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.analysis.changes import changes
from rollscope.analysis.compare import compare
from rollscope.analysis.differs import differences
from rollscope.analysis.filters import Filter, FilterError, parse_filter
from rollscope.analysis.hotspots import PathTotal, hotspots
from rollscope.analysis.intervals import clip, sum_ns, union_ns
from rollscope.analysis.matching import matches
from rollscope.analysis.rows import EventRow, ProcessRow, SessionRow, SpanRow
from rollscope.analysis.staleness import LagHistogram, lag_histogram, staleness
from rollscope.analysis.statistics import (
    average_ranks,
    benjamini_hochberg,
    cliffs_delta,
    fisher_exact,
    mann_whitney,
    median_difference,
)
from rollscope.analysis.stuck import ALARMS, Reference, judge_sessions
from rollscope.analysis.waste import kolmogorov_distance, selection, waste
from rollscope.model.kinds import Kind, Outcome, Status

S = 1_000_000_000
NOW = 60 * S
NUMBERS = st.lists(st.integers(-5, 5), max_size=12)
TIMES = st.integers(0, 60)


@st.composite
def _sessions(draw: st.DrawFn, max_size: int = 12) -> list[SessionRow]:
    """Give sessions in any state: open, over, lost, consumed or not, with and without versions."""
    sessions = []
    for span_id in range(1, draw(st.integers(0, max_size)) + 1):
        start, end = sorted((draw(TIMES), draw(TIMES)))
        is_over = draw(st.booleans())
        is_lost = is_over and draw(st.booleans())
        is_consumed = is_over and not is_lost and draw(st.booleans())
        ended = Status.LOST if is_lost else Status.OK
        sessions.append(
            SessionRow(
                span_id=span_id,
                task_key=draw(st.sampled_from([None, "a", "b"])),
                sample=draw(st.sampled_from([None, 0, 1])),
                attempt=draw(st.integers(0, 2)),
                start_ns=start * S,
                end_ns=end * S if is_over else None,
                status=ended if is_over else Status.OPEN,
                outcome=draw(st.sampled_from([None, *Outcome])) if is_over else None,
                consumed_ns=(end + draw(st.integers(0, 5))) * S if is_consumed else None,
                version_start=draw(st.none() | st.integers(0, 4)),
                deadline_ns=draw(st.none() | TIMES.map(lambda s: s * S)),
                tokens_out=draw(st.none() | st.integers(0, 9)),
            )
        )
    return sessions


@given(NUMBERS, NUMBERS)
def test_cliffs_delta_is_a_count_over_all_pairs(first: list[int], second: list[int]) -> None:
    balance = sum((a > b) - (a < b) for a, b in product(first, second))
    wanted = balance / (len(first) * len(second)) if first and second else 0.0

    assert cliffs_delta(first, second) == pytest.approx(wanted)


@given(NUMBERS, NUMBERS)
def test_p_values_are_the_same_from_either_side(first: list[int], second: list[int]) -> None:
    p = mann_whitney(first, second)

    assert 0 <= p <= 1
    assert p == pytest.approx(mann_whitney(second, first))


@given(*[st.integers(0, 8)] * 4)
def test_fisher_adds_up_all_tables_that_are_no_more_probable(
    a: int, b: int, c: int, d: int
) -> None:
    having = a + c

    def ways(count: int) -> int:
        return math.comb(a + b, count) * math.comb(c + d, having - count)

    possible = [count for count in range(having + 1) if ways(count)]
    wanted = sum(ways(n) for n in possible if ways(n) <= ways(a)) / sum(map(ways, possible))

    assert fisher_exact(a, b, c, d) == pytest.approx(wanted)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_q_values_keep_the_order_and_are_never_smaller_than_p(p_values: list[float]) -> None:
    q_values = benjamini_hochberg(p_values)

    count = len(p_values)
    for p, q in zip(p_values, q_values, strict=True):
        as_small = {other: sum(x <= other for x in p_values) for other in p_values if other >= p}
        wanted = min(1.0, *(other * count / rank for other, rank in as_small.items()), 1.0)
        assert q == pytest.approx(wanted)
        assert q >= p or q == pytest.approx(p)


@given(NUMBERS)
def test_ranks_are_one_more_than_what_is_below_and_half_of_what_is_equal(
    values: list[int],
) -> None:
    wanted = [sum(o < v for o in values) + (sum(o == v for o in values) + 1) / 2 for v in values]

    assert average_ranks(values) == wanted


VALUES = st.lists(
    st.tuples(st.none() | st.integers(0, 7), st.integers(-50, 50)), min_size=1, max_size=40
)


@settings(max_examples=60)
@given(VALUES, VALUES)
def test_an_interval_lies_within_what_can_be_drawn(
    first: list[tuple[int | None, int]], second: list[tuple[int | None, int]]
) -> None:
    found = median_difference(first, second, resamples=40)

    assert found is not None
    medians = [sorted(value for _, value in side)[(len(side) - 1) // 2] for side in (first, second)]
    assert found.difference == medians[1] - medians[0]
    if found.low is not None and found.high is not None:
        least = min(v for _, v in second) - max(v for _, v in first)
        most = max(v for _, v in second) - min(v for _, v in first)
        assert least <= found.low <= found.high <= most


@given(st.lists(st.integers(0, 9), max_size=30))
def test_a_histogram_counts_each_lag(lags: list[int]) -> None:
    found = lag_histogram(lags)

    assert found.bins == [(lag, lags.count(lag)) for lag in range(10) if lag in lags]
    assert (found.count, found.total) == (len(lags), sum(lags))
    assert found.max == max(lags, default=None)
    if lags:
        assert found.p50 == sorted(lags)[math.ceil(0.5 * len(lags)) - 1]
    assert (found.p95 is None) == (len(lags) < 20)


@settings(max_examples=80)
@given(_sessions(), st.lists(st.tuples(TIMES, st.integers(0, 6)), max_size=6))
def test_staleness_is_looked_up_version_by_version(
    sessions: list[SessionRow], published: list[tuple[int, int]]
) -> None:
    events = [EventRow(name="weights.published", time_ns=t * S, version=v) for t, v in published]

    found = staleness(sessions, events)

    def lags(times: dict[int, int | None]) -> list[int]:
        known = []
        for session in sessions:
            when = times[session.span_id]
            if published and session.version_start is not None and when is not None:
                out = [version for time, version in published if time * S <= when]
                known.append(max([session.version_start, *out]) - session.version_start)
        return sorted(known)

    def spread(histogram: LagHistogram) -> list[int]:
        return [lag for lag, count in histogram.bins for _ in range(count)]

    ends = {row.span_id: row.end_ns if row.is_measured else None for row in sessions}
    assert spread(found.at_start) == lags({row.span_id: row.start_ns for row in sessions})
    assert spread(found.at_end) == lags(ends)
    assert spread(found.at_consume) == lags({row.span_id: row.consumed_ns for row in sessions})
    assert found.without_version == sum(row.version_start is None for row in sessions)
    starts = {row.span_id: row.start_ns if row.is_measured else None for row in sessions}
    assert found.in_flight.total == sum(lags(ends)) - sum(lags(starts))
    assert all(lag >= 0 for lag in (*spread(found.in_flight), *spread(found.in_queue)))


@settings(max_examples=80)
@given(_sessions(), st.booleans())
def test_every_session_that_is_over_is_consumed_wasted_or_pending(
    sessions: list[SessionRow], is_final: bool
) -> None:
    found = waste(sessions, is_final=is_final)

    over = [row for row in sessions if row.end_ns is not None]
    consumed = [row for row in over if row.consumed_ns is not None]
    assert found.all_count == len(over)
    assert found.count + found.pending + len(consumed) == len(over)
    assert found.count == sum(row.count for row in found.rows)
    assert found.slot_ns == sum(row.slot_ns for row in found.rows) <= found.all_slot_ns
    assert sum(row.share for row in found.rows) == pytest.approx(found.share)
    if found.pending == 0:
        unused = [row for row in over if row.consumed_ns is None]
        assert found.slot_ns == sum((row.end_ns or 0) - row.start_ns for row in unused)
        assert found.tokens == sum(row.tokens_out or 0 for row in unused)
    retried = [row for row in found.rows if row.is_earlier_attempt]
    assert sum(row.count for row in retried) <= sum(
        any(
            (other.task_key, other.sample) == (row.task_key, row.sample)
            and other.attempt > row.attempt
            for other in over
        )
        for row in over
    )


@given(st.integers(0, 5))
def test_where_all_failed_all_is_waste(count: int) -> None:
    sessions = [
        SessionRow(span_id=n, start_ns=0, end_ns=n * S, status=Status.ERROR, outcome=Outcome.FAILED)
        for n in range(count)
    ]

    found = waste(sessions)

    assert (found.count, found.pending) == (count, 0)
    assert found.share == (1.0 if count > 1 else 0.0)


@given(NUMBERS, NUMBERS)
def test_deciles_hold_every_session_once(consumed: list[int], discarded: list[int]) -> None:
    found = selection("length", consumed, discarded)

    assert sum(decile.consumed for decile in found.deciles) == len(consumed)
    assert sum(decile.discarded for decile in found.deciles) == len(discarded)
    if consumed and discarded:
        distance = max(
            abs(
                sum(v <= at for v in consumed) / len(consumed)
                - sum(v <= at for v in discarded) / len(discarded)
            )
            for at in range(-5, 6)
        )
        assert found.distance == pytest.approx(distance)
        assert kolmogorov_distance(sorted(consumed), sorted(discarded)) == found.distance


@st.composite
def _open_spans(draw: st.DrawFn, sessions: list[SessionRow]) -> list[SpanRow]:
    spans: list[SpanRow] = []
    for session in sessions:
        ids = [session.span_id]
        for _ in range(draw(st.integers(0, 4))):
            span_id = 100 + len(spans)
            spans.append(
                SpanRow(
                    span_id=span_id,
                    parent_id=draw(st.sampled_from(ids)),
                    session_id=session.span_id,
                    kind=Kind.PHASE,
                    name=draw(st.sampled_from(["generate", "toolcall"])),
                    detail=draw(st.sampled_from([None, "browser"])),
                    start_ns=draw(TIMES) * S,
                    status=Status.OPEN,
                )
            )
            ids.append(span_id)
    return spans


REFERENCES = st.dictionaries(
    st.tuples(
        st.sampled_from(["generate", "toolcall", "session"]), st.sampled_from([None, "browser"])
    ),
    st.builds(
        Reference, st.sampled_from([0, 19, 20, 99, 100]), st.integers(0, 20 * S), st.just(30 * S)
    ),
)


@settings(max_examples=80)
@given(st.data(), _sessions(), REFERENCES, st.booleans())
def test_every_open_session_is_judged_once_on_its_deepest_span(
    data: st.DataObject,
    sessions: list[SessionRow],
    references: dict[tuple[str, str | None], Reference],
    is_silent: bool,
) -> None:
    spans = data.draw(_open_spans(sessions))
    process = ProcessRow(process=0, last_seen_ns=0 if is_silent else NOW)

    rows = judge_sessions(spans, sessions, references, now_ns=NOW, processes=[process])

    parents = {span.span_id: span.parent_id for span in spans}

    def depth(span_id: int) -> int:
        parent = parents.get(span_id)
        return 0 if parent is None else 1 + depth(parent)

    still_open = [row.span_id for row in sessions if row.end_ns is None]
    assert sorted(row.session_id or 0 for row in rows) == still_open
    for row in rows:
        own = [span for span in spans if span.session_id == row.session_id]
        if own:
            deepest = max((depth(span.span_id), span.start_ns) for span in own)
            assert (depth(row.span_id), row.start_ns) == deepest
        else:
            assert row.span_id == row.session_id
        assert row.age_ns == NOW - row.start_ns >= row.quiet_ns >= 0
        assert row.is_alarm == (row.band in ALARMS)
        assert row.is_alarm or not is_silent
        if row.score is not None:
            assert row.score <= row.age_ns / S
    scores = [row.score for row in rows]
    scored = [score for score in scores if score is not None]
    assert scores == [*sorted(scored, reverse=True), *[None] * (len(scores) - len(scored))]
    ages = [row.age_ns for row in rows if row.score is None]
    assert ages == sorted(ages, reverse=True)


@given(st.integers(0, 5))
def test_where_all_are_stuck_all_are_alarms(count: int) -> None:
    sessions = [SessionRow(span_id=n, start_ns=0, status=Status.OPEN) for n in range(count)]
    reference = Reference(count=100, p99_ns=20 * S, max_ns=20 * S)

    rows = judge_sessions([], sessions, {("session", None): reference}, now_ns=NOW)

    assert [(row.band, row.score, row.is_alarm) for row in rows] == [("stuck", 3.0, True)] * count


@given(st.lists(st.lists(st.tuples(TIMES, TIMES), max_size=3), max_size=4))
def test_hotspots_close_the_sum_whatever_overlaps(children: list[list[tuple[int, int]]]) -> None:
    whole = (10, 50)
    paths = {f"session / {n}": intervals for n, intervals in enumerate(children)}
    direct = [interval for intervals in paths.values() for interval in intervals]
    covered: list[tuple[int, int]] = []
    totals = [PathTotal(path="session", total_ns=40, count=1)]
    for path, intervals in paths.items():
        # What a path adds to what the paths before it cover, as a sweep over siblings gives it.
        added = union_ns(clip([*covered, *intervals], whole)) - union_ns(clip(covered, whole))
        covered += intervals
        total = sum_ns(intervals)
        totals.append(PathTotal(path=path, parent_path="session", total_ns=total, covered_ns=added))

    found = hotspots(totals)

    footer = found.footer
    assert footer.session_ns == 40
    assert footer.other_ns == 40 - union_ns(clip(direct, whole))
    assert footer.children_ns + footer.other_ns == footer.session_ns + footer.overlap_ns
    assert sum(row.self_ns for row in found.rows) == footer.session_ns + footer.overlap_ns
    joined = hotspots(totals, by_name=True)
    assert joined.footer == footer
    assert sum(row.self_ns for row in joined.rows) == sum(row.self_ns for row in found.rows)


@given(st.lists(st.integers(0, 3).map(float), max_size=45))
def test_marks_are_ten_steps_apart_and_within_their_windows(values: list[float]) -> None:
    marks = changes({"x": list(enumerate(values))}).marks

    steps = [mark.step for mark in marks]
    assert all(later - sooner >= 10 for sooner, later in pairwise(steps))
    for mark in marks:
        assert 10 <= mark.step < len(values)
        half = (mark.before + mark.after) / 2
        assert (values[mark.step] > half) == (mark.after > mark.before)
        assert 0 < mark.size <= 2


@settings(max_examples=40)
@given(st.integers(0, 40), st.integers(0, 60), st.sampled_from(["host-0", "host-1", "gone"]))
def test_differences_count_shares_as_they_are(chosen: int, rest: int, host: str) -> None:
    groups = [
        [
            SessionRow(span_id=n, start_ns=0, host="host-0" if n % 3 else host, status=Status.ERROR)
            for n in range(count)
        ]
        for count in (chosen, rest)
    ]

    found = differences(*groups)

    assert found.is_enough == (chosen >= 8 and rest >= 30)
    for row in found.rows:
        shares = [sum(s.host == row.value for s in side) / len(side) for side in groups]
        assert row.effect == pytest.approx(shares[0] - shares[1])
        assert row.q <= 0.05
    assert found.rows == []  # both sides are made alike


@settings(max_examples=40)
@given(VALUES)
def test_a_side_does_not_differ_from_itself(values: list[tuple[int | None, int]]) -> None:
    lengths = [(task, value + 100) for task, value in values]

    (row,) = compare({"session": lengths}, {"session": lengths})

    assert (row.difference_ns, row.effect) == (0, 0.0)


def _read(text: str) -> Filter | FilterError:
    try:
        return parse_filter(text)
    except FilterError as error:
        return error


WORDS = st.sampled_from(
    [
        "phase",
        "ran",
        "step",
        "attr.x",
        "outcome",
        ":",
        "<",
        ">=",
        "-",
        ",",
        '"',
        " ",
        "30s",
        "7",
        "a",
    ]
)


@settings(max_examples=80)
@given(st.lists(WORDS, max_size=10).map("".join) | st.text(max_size=12), _sessions(max_size=3))
def test_any_text_is_a_filter_or_an_error_that_points_into_it(
    text: str, sessions: list[SessionRow]
) -> None:
    expression = _read(text)
    if isinstance(expression, FilterError):
        assert 0 <= expression.position <= len(text)
        assert str(expression)
        return
    for session in sessions:
        assert matches(expression, session) == all(
            matches(Filter((term,)), session) for term in expression.terms
        )


@given(
    _sessions(max_size=4), st.sampled_from(["step:1", "ran>9s", "outcome:failed", "a", "task:a"])
)
def test_a_minus_turns_an_answer_around(sessions: list[SessionRow], text: str) -> None:
    for session in sessions:
        is_let_through = matches(parse_filter(text), session)
        assert matches(parse_filter(f"-{text}"), session) is not is_let_through
