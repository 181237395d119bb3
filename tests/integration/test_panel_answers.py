"""Answers behind single panels are those of a naive reading of the logs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from rollscope.analysis.filters import parse_filter
from rollscope.analysis.intervals import union_ns
from rollscope.analysis.matching import matches
from rollscope.analysis.ranks import nearest_rank
from rollscope.analysis.roles import role_of
from rollscope.analysis.rows import SessionRow, SpanRow
from rollscope.analysis.tail import tail_split
from rollscope.answers.durations import durations
from rollscope.answers.encoding import encode_answer
from rollscope.answers.facets import facets
from rollscope.answers.facts import gather_steps
from rollscope.answers.groups import list_groups
from rollscope.answers.questions import QUESTIONS
from rollscope.answers.scatter import scatter
from rollscope.answers.scope import StepScope, known_steps
from rollscope.answers.services import services
from rollscope.answers.sessions import list_sessions
from rollscope.answers.staircase import step_staircase
from rollscope.answers.tasks import list_tasks
from rollscope.errors import CommandError, FilterError
from rollscope.model.kinds import Kind
from rollscope.store.embedded import RunStore
from rollscope.testing import generate_run
from tests.oracle import SECOND, SHAPES, Oracle, counts_for, is_measured

EVERYTHING = StepScope()
ODD_SHAPES = ["overlapping", "retried", "running", "skewed", "without sessions", "without steps"]


class Asked:
    """A run, asked both ways."""

    def __init__(self, store: RunStore, run: Path) -> None:
        self.store = store
        self.oracle = Oracle(run, store.now_ns, store.offsets)
        steps = known_steps(store)
        self.scopes = [EVERYTHING, *(StepScope(step, step) for step in steps[-1:])]

    def sessions(self, scope: StepScope, filter_text: str = "") -> list[SessionRow]:
        bounds = None if scope.first is None or scope.last is None else (scope.first, scope.last)
        wanted = parse_filter(filter_text)
        return [
            one
            for one in self.oracle.sessions
            if counts_for(one, bounds)
            and matches(
                wanted,
                one,
                self.oracle._by_session.get(one.span_id, []),
                process=self.oracle.process_of.get(one.process),
                now_ns=self.oracle.now_ns,
            )
        ]

    def phases(self, scope: StepScope) -> list[SpanRow]:
        chosen = {one.span_id for one in self.sessions(scope)}
        own = [row for row in self.oracle.spans if row.session_id in chosen]
        return [row for row in own if row.kind is Kind.PHASE]

    def queued(self, row: SpanRow) -> int | None:
        told = self.oracle.known[row.span_id].record.attrs.get("queue_s")
        return None if told is None else min(round(told * 1e9), self.ran(row))

    def ran(self, row: SessionRow | SpanRow) -> int:
        end = self.oracle.now_ns if row.end_ns is None else row.end_ns
        return max(end - row.start_ns, 0)


@pytest.fixture(scope="module", params=ODD_SHAPES)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    run = tmp_path_factory.mktemp("panels") / "run"
    truth = generate_run(run, SHAPES[request.param])
    with RunStore(run, threads=1, now_ns=truth.end_ns + 5 * SECOND) as store:
        yield Asked(store, run)


def test_services_are_counted_and_timed(asked: Asked) -> None:
    for scope in asked.scopes:
        calls: dict[tuple[str, str | None], list[SpanRow]] = defaultdict(list)
        for row in asked.phases(scope):
            role = role_of(row.name)
            if role in ("tool", "env", "reward") or (role is None and row.detail is not None):
                calls[row.name, row.detail].append(row)
        found = {(one.name, one.detail): one for one in services(asked.store, scope).lines}

        assert found.keys() == calls.keys()
        for key, rows in calls.items():
            line, measured = found[key], [row for row in rows if is_measured(row)]
            assert (line.calls, line.measured) == (len(rows), len(measured))
            assert line.errors == sum(row.status == "error" for row in rows)
            assert sum(line.error_kinds.values()) == line.errors
            ends = [(row.start_ns, row.start_ns + asked.ran(row)) for row in rows]
            assert line.busy_ns == union_ns(ends)
            assert 0 <= line.busy_share <= 1
            waits = {row.span_id: asked.queued(row) for row in measured}
            queued = sorted(wait for wait in waits.values() if wait is not None)
            assert line.queue_p50_ns == (nearest_rank(queued, 50) if queued else None)
            served = sorted(asked.ran(row) - (waits[row.span_id] or 0) for row in measured)
            assert line.service_p50_ns == (nearest_rank(served, 50) if served else None)
            is_enough = len(served) >= 20
            assert line.service_p95_ns == (nearest_rank(served, 95) if is_enough else None)


def test_every_measured_length_is_in_one_bin(asked: Asked) -> None:
    for scope in asked.scopes:
        found = durations(asked.store, scope)
        sessions = [one for one in asked.sessions(scope) if one.is_measured]
        lengths = Counter(row.name for row in asked.phases(scope) if is_measured(row))

        counts = {one.name: sum(one.counts) for one in found.histograms}
        assert counts == {"session": len(sessions), **lengths}
        assert sum(map(sum, found.heat.counts)) == len(sessions)
        edges = found.heat.length_edges_ns
        for place, row in enumerate(found.heat.counts):
            inside = [one for one in sessions if edges[place] <= asked.ran(one) < edges[place + 1]]
            assert sum(row) == len(inside)
        assert found.points.of == len(found.points.sessions) == len(asked.sessions(scope))


def test_points_and_lines_are_sessions_of_the_run(asked: Asked) -> None:
    for text in ("", "reward>0", "phase:toolcall", "attr.absent:x", "tokens>100"):
        rows = {one.span_id: one for one in asked.sessions(EVERYTHING, text)}
        found = scatter(asked.store, EVERYTHING, text)

        points = found.points
        assert sorted(points.sessions) == sorted(rows)
        for span_id, ran, outcome in zip(
            points.sessions, points.ran_ns, points.outcome, strict=True
        ):
            one = rows[span_id]
            assert ran == asked.ran(one)
            fate = one.status if one.status in ("open", "lost") else one.outcome
            assert outcome == (fate or "none")
        measured = sorted(asked.ran(one) for one in rows.values() if one.is_measured)
        for line in found.lines:
            assert line.ran_ns == nearest_rank(measured, line.percent)
            assert asked.ran(rows[line.session_id]) == line.ran_ns
        wanted = [50, 95] if len(measured) >= 20 else [50] if measured else []
        assert [line.percent for line in found.lines] == wanted


def test_a_staircase_has_every_session_and_its_charges_make_the_bubble(asked: Asked) -> None:
    for number in known_steps(asked.store)[-2:]:
        (facts,), _ = gather_steps(asked.store, number, number)
        tail = tail_split(facts)
        found = step_staircase(asked.store, number)

        ends = [row.end_ns for row in found.rows]
        assert ends == sorted(ends)
        wanted = asked.sessions(StepScope(number, number))
        assert {row.session_id for row in found.rows} == {one.span_id for one in wanted}
        assert sum(row.charge_ns for row in found.rows) == found.bubble_ns == tail.bubble_ns
        assert [row.session_id for row in found.rows if row.is_holder] == tail.holders[::-1]
        in_tail = sum(sum(pool.tail) for pool in found.pools) * found.bin_ns
        assert in_tail == pytest.approx(tail.bubble_ns, rel=1e-3, abs=SECOND / 100)
        times = {line.name: line.time_ns for line in found.lines}
        if wanted:
            assert times["last"] == ends[-1]
            assert times["p50"] == nearest_rank(ends, 50)
            assert times["p95"] == tail.p95_end_ns
            assert times["last start"] == max(row.start_ns for row in found.rows)


def test_a_step_that_is_not_there_has_no_staircase(asked: Asked) -> None:
    with pytest.raises(CommandError, match="no step 999"):
        step_staircase(asked.store, 999)


def test_tasks_add_up_their_sessions(asked: Asked) -> None:
    for text in ("", "outcome:failed,timeout", "attr.absent:none"):
        tries: dict[str | None, list[SessionRow]] = defaultdict(list)
        for one in asked.sessions(EVERYTHING, text):
            tries[one.task_key].append(one)
        found = list_tasks(asked.store, EVERYTHING, text, limit=1000)

        assert found.matched == len(found.tasks) == len(tries)
        for line in found.tasks:
            rows = tries[line.task_key]
            assert line.tries == len(rows)
            assert line.total_ns == sum(asked.ran(one) for one in rows)
            assert line.failures == sum(
                one.status in ("error", "lost") or one.outcome in ("failed", "timeout")
                for one in rows
            )
            over = sum(one.status != "open" for one in rows)
            assert line.failure_share == pytest.approx(line.failures / over if over else 0)
            assert line.retries == sum(one.attempt > 0 for one in rows)
            rewards = [one.reward for one in rows if one.reward is not None]
            assert line.rewarded == len(rewards)
            if rewards:
                assert line.mean_reward == pytest.approx(fmean(rewards))
                assert line.spread == pytest.approx(pstdev(rewards), abs=1e-9)
            slowest = max(asked.ran(one) for one in rows)
            assert asked.ran(asked.oracle.session_of[line.session_id]) == slowest


def test_pages_of_tasks_and_sessions_follow_each_other(asked: Asked) -> None:
    whole = [line.row.span_id for line in list_sessions(asked.store, EVERYTHING, limit=30).sessions]
    parts = [
        line.row.span_id
        for offset in (0, 10, 20)
        for line in list_sessions(asked.store, EVERYTHING, limit=10, offset=offset).sessions
    ]
    assert parts == whole
    in_memory = [
        line.row.span_id
        for offset in (0, 10)
        for line in list_sessions(
            asked.store, EVERYTHING, "attr.absent:none", limit=10, offset=offset
        ).sessions
    ]
    assert in_memory == whole[:20]
    for sort in ("-total", "task", "-failures"):
        tasks = [one.task_key for one in list_tasks(asked.store, EVERYTHING, "", sort).tasks]
        parts_of = [
            one.task_key
            for offset in range(0, 50, 25)
            for one in list_tasks(asked.store, EVERYTHING, "", sort, 25, offset).tasks
        ]
        assert parts_of == tasks


def test_facets_count_what_their_terms_find(asked: Asked) -> None:
    for scope in asked.scopes:
        for text in ("", "phase:toolcall", "attr.absent:none"):
            found = facets(asked.store, scope, text)
            assert found.of == len(asked.sessions(scope))
            assert found.matched == len(asked.sessions(scope, text))
            for facet in found.facets:
                for one in facet.values[:4]:
                    wanted = asked.sessions(scope, f"{text} {one.term}")
                    assert one.count == len(wanted), (facet.field, one)
                if facet.field != "phase":
                    counted = sum(one.count for one in facet.values)
                    assert counted == found.matched or facet.others


def test_a_filter_that_finds_nothing_says_which_term_removed_how_many(asked: Asked) -> None:
    found = facets(asked.store, EVERYTHING, "reward>1000 phase:generate attr.absent:none")
    assert found.matched == 0
    assert [one.term for one in found.terms] == [
        "reward>1000",
        "phase:generate",
        "attr.absent:none",
    ]
    everyone = len(asked.sessions(EVERYTHING))
    generating = len(asked.sessions(EVERYTHING, "phase:generate"))
    assert [one.without for one in found.terms] == [generating, 0, 0]
    assert [one.alone for one in found.terms] == [0, generating, everyone]


def test_groups_are_complete_lists_of_last_tries(asked: Asked) -> None:
    found = list_groups(asked.store, EVERYTHING, limit=1000)
    members: dict[tuple[str, int | None], dict[int | None, SessionRow]] = defaultdict(dict)
    for one in sorted(asked.sessions(EVERYTHING), key=lambda one: (one.attempt, one.start_ns)):
        key = one.group or one.task_key
        if key is not None:
            members[key, one.charged_step][one.sample] = one
    assert found.of == len(found.groups)
    for line in found.groups:
        group = members[line.group, line.step].values()
        rewards = [one.reward for one in group if one.reward is not None]
        assert line.members == len(group)
        assert line.is_equal == (len(set(rewards)) == 1 and len(rewards) == len(group) > 1)
        assert asked.ran(asked.oracle.session_of[line.session_id]) == max(map(asked.ran, group))


@pytest.mark.parametrize("name", ["tasks", "groups"])
def test_an_unknown_order_is_refused_with_the_known_ones(asked: Asked, name: str) -> None:
    with pytest.raises(CommandError, match="cannot sort by 'colour'; one of"):
        QUESTIONS[name].ask(asked.store, {"sort": "colour", "scope": "all"})


@pytest.mark.parametrize("name", ["durations", "facets", "scatter", "tasks"])
def test_a_filter_that_cannot_be_read_is_told(asked: Asked, name: str) -> None:
    with pytest.raises(FilterError):
        QUESTIONS[name].ask(asked.store, {"filter": "colour:red", "scope": "all"})


def test_panels_become_json_with_ids_as_text(asked: Asked) -> None:
    names = ("durations", "facets", "groups", "scatter", "services", "tasks")
    for name in names:
        assert encode_answer(QUESTIONS[name].ask(asked.store, {"scope": "all"}))
    session = next((one.span_id for one in asked.oracle.sessions), None)
    if session is not None:
        text = f"{session:016x}"
        for name in ("turns", "payloads"):
            answer = encode_answer(QUESTIONS[name].ask(asked.store, {"session": text}))
            assert answer.startswith(f'{{"session_id":"{text}"'.encode())
        points = encode_answer(QUESTIONS["scatter"].ask(asked.store, {}))
        assert f'"{text}"'.encode() in points
