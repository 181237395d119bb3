"""How many versions behind sessions were."""

from rollscope.analysis.rows import EventRow, SessionRow, SpanRow
from rollscope.analysis.staleness import PhaseSplit, Versions, lag_histogram, staleness
from rollscope.model.kinds import Status


def _published(*times: int) -> list[EventRow]:
    return [
        EventRow(name="weights.published", time_ns=time_ns, version=version)
        for version, time_ns in enumerate(times, start=1)
    ]


def _session(
    span_id: int, start: int, end: int | None, consumed: int | None, version: int | None
) -> SessionRow:
    return SessionRow(
        span_id=span_id,
        start_ns=start,
        end_ns=end,
        consumed_ns=consumed,
        version_start=version,
    )


def test_lag_at_start_at_end_and_at_consumption() -> None:
    events = _published(10, 20, 30, 40)
    sessions = [_session(1, 12, 25, 45, 1), _session(2, 22, 28, None, 1)]

    found = staleness(sessions, events)

    assert found.at_start.bins == [(0, 1), (1, 1)]
    assert found.at_end.bins == [(1, 2)]
    assert found.at_consume.bins == [(3, 1)]
    assert found.in_flight.bins == [(0, 1), (1, 1)]
    assert found.in_queue.bins == [(2, 1)]
    assert (found.at_consume.p50, found.at_consume.p95, found.at_consume.max) == (3, None, 3)


def test_sessions_without_a_version_are_counted_not_guessed() -> None:
    found = staleness([_session(1, 12, 25, 45, None)], _published(10))

    assert found.without_version == 1
    assert found.at_start.count == found.at_end.count == found.at_consume.count == 0


def test_without_a_publication_no_lag_is_told() -> None:
    found = staleness([_session(1, 12, 25, 45, 3)], [EventRow(name="other", time_ns=1, version=2)])

    assert not found.is_published
    assert found.at_start.count == 0


def test_a_version_in_use_was_published_whatever_the_clocks_say() -> None:
    versions = Versions(_published(10, 20))

    assert versions.at(9) is None
    assert versions.lag(0, 9) == 0
    assert versions.lag(2, 15) == 0
    assert versions.lag(1, 20) == 1


def test_a_version_published_late_does_not_turn_time_back() -> None:
    events = [
        EventRow(name="weights.published", time_ns=10, version=5),
        EventRow(name="weights.published", time_ns=20, version=4),
    ]

    assert Versions(events).at(25) == 5


def test_a_lost_session_has_no_lag_at_its_end() -> None:
    lost = _session(1, 12, 25, None, 1)
    lost.status = Status.LOST

    found = staleness([lost], _published(10, 20))

    assert (found.at_start.count, found.at_end.count) == (1, 0)


def test_phases_of_sessions_that_lag_stand_against_the_rest() -> None:
    events = _published(10, 20, 30)
    sessions = [_session(1, 12, 35, None, 1), _session(2, 12, 15, None, 1)]
    phases = {1: {"toolcall": 20, "generate": 2}, 2: {"generate": 3}}

    found = staleness(sessions, events, phases)

    assert (found.stale_count, found.rest_count) == (1, 1)
    assert found.phases == [
        PhaseSplit("toolcall", 20, 0, 20, 0),
        PhaseSplit("generate", 2, 3, 2, 3),
    ]


def test_the_bound_and_the_lag_of_the_average_token() -> None:
    events = _published(10, 20, 30)
    segments = [
        SpanRow(span_id=5, session_id=1, start_ns=12, version=1, tokens=30),
        SpanRow(span_id=6, session_id=1, start_ns=22, version=2, tokens=10),
        SpanRow(span_id=7, session_id=2, start_ns=22, version=2, tokens=999),
    ]

    found = staleness([_session(1, 12, 25, 35, 1)], events, bound=1, segments=segments)

    assert found.beyond_bound == 1
    assert found.token_mean == (30 * 2 + 10 * 1) / 40


def test_percentiles_are_lags_that_occurred() -> None:
    histogram = lag_histogram([0] * 10 + [1] * 9 + [7])

    assert (histogram.count, histogram.p50, histogram.p95, histogram.max) == (20, 0, 1, 7)
    assert histogram.total == 16
