"""Answers about whole generated runs are those of a naive reading of their logs."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollscope.analysis.changes import changes
from rollscope.analysis.compare import compare
from rollscope.analysis.details import detail_labels
from rollscope.analysis.differs import differences
from rollscope.analysis.eta import Eta, estimate_end
from rollscope.analysis.filters import parse_filter
from rollscope.analysis.hotspots import Hotspots
from rollscope.analysis.matching import matches
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.analysis.rules import LoopStall
from rollscope.analysis.sessions import session_times
from rollscope.analysis.staleness import Versions, staleness
from rollscope.analysis.steps import StepSummary, analyse_step, outline, summarise
from rollscope.analysis.stuck import StuckRow, judge_sessions, judge_spans
from rollscope.analysis.verdict import judge_step
from rollscope.analysis.whatif import replay_step
from rollscope.answers.compare import Comparison, Selection, compare_runs
from rollscope.answers.hotspots import HotspotAnswer
from rollscope.answers.phases import Phases
from rollscope.answers.scope import StepScope
from rollscope.answers.session import EventDetail, SessionAnswer, SpanDetail, StackDetail
from rollscope.answers.sessions import SessionLine, SessionList
from rollscope.answers.steps import StepAnswer, StepLine, Steps
from rollscope.answers.stuck import Stuck
from rollscope.instrument.tracer import Tracer
from rollscope.model.frames import pack_frame, scan_frames
from rollscope.model.kinds import Kind, Status
from rollscope.store.clocks import Offset
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock, RunShape, RunTruth, generate_run
from tests.oracle import (
    SECOND,
    SHAPES,
    Oracle,
    Question,
    Remembering,
    Scope,
    ask,
    counts_for,
    is_measured,
    questions,
)

Lengths = dict[str, list[tuple[str | None, int]]]


def bounds(scope: StepScope) -> Scope:
    return None if scope.first is None or scope.last is None else (scope.first, scope.last)


def expected(oracle: Oracle, question: Question) -> Any:
    """Answer a question from what the oracle knows."""
    match question:
        case "steps", scope:
            return expected_steps(oracle, scope)
        case "step", number:
            return expected_step(oracle, number)
        case ("stuck",):
            return expected_stuck(oracle)
        case "hotspots", scope, by, outside:
            found = oracle.hotspots(bounds(scope), by, outside=outside)
            return HotspotAnswer(scope=scope.text, grouped_by=by, outside=outside, hotspots=found)
        case "phases", scope, by:
            return Phases(
                scope=scope.text,
                grouped_by=by,
                lines=oracle.phase_lines(bounds(scope), by),
                errors=oracle.error_kinds(bounds(scope)),
            )
        case "session", session_id:
            return expected_session(oracle, oracle.session_of[session_id])
        case "sessions", scope, text, sort:
            return expected_list(oracle, bounds(scope), text, sort)
        case "compare", first, second:
            return expected_comparison(oracle, first, oracle, second)
        case "selection", scope, text:
            return expected_selection(oracle, bounds(scope), text)
        case _:
            raise ValueError(question)


def expected_steps(oracle: Oracle, scope: StepScope | None) -> Steps:
    numbers = sorted(oracle.step_spans())
    chosen = numbers[-10:]
    if scope is not None:
        chosen = [n for n in numbers if (scope.first or 0) <= n <= (scope.last or 0)]
    earlier = [n for n in numbers if chosen and n < chosen[0]][-20:]
    history: list[StepSummary] = [outline(oracle.outlined(number)) for number in earlier]
    lines: list[StepLine] = []
    for number in chosen:
        facts = oracle.step(number)
        parts = analyse_step(facts, oracle.spans_of)
        summary = summarise(facts, oracle.spans_of, parts)
        verdict = judge_step(
            facts,
            oracle.spans_of,
            history=history,
            parts=parts,
            stuck=alarms_of(oracle, facts),
            stalls=stalls_of(oracle, facts),
        )
        walls = [one.wall_ns for one in history[-10:] if not one.is_open]
        change = summary.wall_ns / median(walls) - 1 if walls else None
        lines.append(StepLine(summary=summary, change=change, verdict=verdict))
        history.append(summary)
    series: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
    for one in history:
        if one.step is not None and not one.is_open:
            series["wall"].append((one.step, one.wall_ns / 1e9))
            for name, share in one.phase_shares.items():
                series[f"share of {name}"].append((one.step, share))
    return Steps(
        steps=lines,
        of=len(numbers),
        unassigned=sum(one.charged_step is None or not numbers for one in oracle.sessions),
        changes=changes(series),
    )


def expected_step(oracle: Oracle, number: int) -> StepAnswer:
    facts = oracle.step(number)
    earlier = [n for n in sorted(oracle.step_spans()) if n < number][-10:]
    later = [n for n in sorted(oracle.step_spans()) if n > number]
    parts = analyse_step(facts, oracle.spans_of)
    by_id = {one.span_id: one for one in facts.sessions}
    by_length = sorted(facts.sessions, key=lambda one: -length(oracle, one))
    return StepAnswer(
        previous=earlier[-1] if earlier else None,
        following=later[0] if later else None,
        summary=summarise(facts, oracle.spans_of, parts),
        verdict=judge_step(
            facts,
            oracle.spans_of,
            history=[outline(oracle.outlined(n)) for n in earlier],
            parts=parts,
            stuck=alarms_of(oracle, facts),
            stalls=stalls_of(oracle, facts),
        ),
        parts=parts,
        staleness=staleness(facts.sessions, facts.events, oracle.unions(facts.sessions)),
        what_if=replay_step(facts),
        eta=expected_end(oracle, facts, earlier[-5:]) if facts.span.end_ns is None else None,
        holders=[by_id[one] for one in parts.tail.holders],
        slowest=by_length[:10],
    )


def length(oracle: Oracle, session: SessionRow) -> int:
    return oracle.length(oracle.known[session.span_id].row)


def alarms_of(oracle: Oracle, facts: StepFacts) -> list[StuckRow]:
    if facts.span.end_ns is not None:
        return []
    own = {one.span_id for one in facts.sessions}
    return [row for row in expected_stuck(oracle).rows if row.is_alarm and row.session_id in own]


def stalls_of(oracle: Oracle, facts: StepFacts) -> list[LoopStall]:
    stalls = []
    for process in oracle.processes:
        samples = [
            metric
            for metric in oracle.metrics
            if metric.name == "event_loop_lag_seconds"
            and int(metric.process, 16) == process.process
            and facts.start_ns <= metric.time_ns <= facts.end_ns
        ]
        if samples:
            total_s, longest_s = sum(m.value for m in samples), max(m.max or 0 for m in samples)
            stall = LoopStall(
                process=process.process,
                pid=process.pid,
                total_ns=round(total_s * 1e9),
                longest_ns=round(longest_s * 1e9),
            )
            stalls.append(stall)
    return sorted(stalls, key=lambda stall: -stall.total_ns)


def expected_end(oracle: Oracle, facts: StepFacts, earlier: Sequence[int]) -> Eta:
    before = [oracle.step(number) for number in earlier]
    known = [summarise(one, oracle.spans_of) for one in before]
    sessions = [one for step in before for one in step.sessions if one.is_measured]
    usual = median([one.sessions for one in known]) if known else len(facts.sessions)
    return estimate_end(
        facts,
        [length(oracle, one) for one in sessions],
        waiting=max(usual - len(facts.sessions), 0),
        after_ns=median([one.train_ns + one.sync_ns for one in known]) if known else 0,
    )


def expected_stuck(oracle: Oracle) -> Stuck:
    spans = [row for row in oracle.spans if row.status is Status.OPEN]
    sessions = [one for one in oracle.sessions if one.status is Status.OPEN]
    known = {
        "now_ns": oracle.now_ns,
        "processes": oracle.processes,
        "stacks": oracle.latest_stacks(),
    }
    references = oracle.references()
    inside = [row for row in spans if row.session_id is not None]
    rows = judge_sessions(inside, sessions, references, progress_ns=oracle.progress(), **known)  # type: ignore[arg-type]
    errors = oracle.last_errors()
    for row in rows:
        row.last_error = errors.get(row.session_id or 0)
    others = [
        row
        for row in spans
        if row.kind not in (Kind.TASK, Kind.STEP)
        and (row.kind is not Kind.STATE or row.name not in ("idle", "queue_empty"))
    ]
    outside = judge_spans(others, references, **known)  # type: ignore[arg-type]
    return Stuck(
        now_ns=oracle.now_ns,
        open_sessions=len(sessions),
        alarms=sum(row.is_alarm for row in [*rows, *outside]),
        rows=rows,
        outside=outside,
    )


def expected_session(oracle: Oracle, session: SessionRow) -> SessionAnswer:
    spans = oracle.spans_of(session.span_id)
    times = session_times(session, spans, oracle.now_ns)
    versions = Versions(oracle.published(2**63))
    at = (session.start_ns, session.end_ns, session.consumed_ns)
    first = session.version_start
    lags = [
        None if first is None or not versions or time is None else versions.lag(first, time)
        for time in at
    ]
    ids = {session.span_id, *(row.span_id for row in spans)}
    stacks = [stack for stack in oracle.stacks if int(stack.span_id, 16) in ids]
    return SessionAnswer(
        session=session,
        now_ns=oracle.now_ns,
        total_ns=length(oracle, session),
        phases=times.phases,
        other_ns=times.other_ns,
        lag_start=lags[0],
        lag_end=lags[1],
        lag_consume=lags[2],
        spans=list(nested(oracle, spans, None, 0)),
        events=[
            EventDetail(name=row.name, time_ns=row.time_ns, attrs=record.attrs)
            for row, record in oracle.events
            if row.session_id == session.span_id
        ],
        stacks=[
            StackDetail(
                span_id=int(stack.span_id, 16),
                time_ns=stack.time_ns,
                task=stack.task,
                frames=stack.frames,
            )
            for stack in sorted(stacks, key=lambda one: (one.time_ns, one.span_id))
        ],
        siblings=[
            without_extras(oracle, one)
            for one in oracle.sessions
            if one is not session
            and (one.task_key, one.group) == (session.task_key, session.group)
            and one.charged_step == session.charged_step
        ],
    )


def nested(
    oracle: Oracle, spans: Sequence[SpanRow], parent: int | None, depth: int
) -> Iterator[SpanDetail]:
    ids = {row.span_id for row in spans}
    for row in spans:
        above = row.parent_id if row.parent_id in ids else None
        if above == parent:
            attrs = oracle.known[row.span_id].record.attrs
            yield SpanDetail(span=row, depth=depth, attrs=attrs)
            yield from nested(oracle, spans, row.span_id, depth + 1)


def without_extras(oracle: Oracle, session: SessionRow) -> SessionRow:
    """Give a session as siblings are listed: no attributes, and the tokens that it says itself."""
    attrs = oracle.known[session.span_id].record.attrs
    said = {"tokens_in": attrs.get("tokens_in"), "tokens_out": attrs.get("tokens_out")}
    return msgspec.structs.replace(session, attrs={}, **said)


def expected_comparison(
    first: Oracle, first_scope: StepScope, second: Oracle, second_scope: StepScope
) -> Comparison:
    left, right = lengths(first, bounds(first_scope)), lengths(second, bounds(second_scope))
    return Comparison(
        first="A",
        second="B",
        first_sessions=len(left.get("session", [])),
        second_sessions=len(right.get("session", [])),
        phases=compare(left, right),
        sampled=[],
    )


def lengths(oracle: Oracle, scope: Scope) -> Lengths:
    found: Lengths = {}
    for row in oracle.spans:
        is_timed = row.session_id is not None and row.kind in (Kind.SESSION, Kind.PHASE)
        if is_timed and is_measured(row) and oracle.is_within(row, scope):
            key = oracle.known[row.span_id].record.task_key
            found.setdefault(row.name, []).append((key, oracle.length(row)))
    return found


def does_match(oracle: Oracle, session: SessionRow, text: str) -> bool:
    return matches(
        parse_filter(text),
        session,
        oracle.spans_of(session.span_id),
        process=oracle.process_of[session.process],
        now_ns=oracle.now_ns,
    )


def expected_lag(session: SessionRow, versions: Versions) -> int | None:
    if session.version_start is None or not versions:
        return None
    moments = (session.consumed_ns, session.end_ns if session.is_measured else None)
    known = [moment for moment in moments if moment is not None]
    return versions.lag(session.version_start, [*known, session.start_ns][0])


def expected_list(oracle: Oracle, scope: Scope, text: str, sort: str) -> SessionList:
    everyone = [one for one in oracle.sessions if counts_for(one, scope)]
    found = [one for one in everyone if does_match(oracle, one, text)]
    key = {"start": "start_ns", "waited": "waited_ns", "tokens": "tokens_out"}[sort.strip("-")]
    sign = -1 if sort.startswith("-") else 1
    found.sort(key=lambda one: (sign * (getattr(one, key) or 0), sign * one.span_id))
    found.sort(key=lambda one: getattr(one, key) is None)
    lines = []
    versions = Versions(oracle.published(2**63))
    for one in found[:20]:
        times = session_times(one, oracle.spans_of(one.span_id), oracle.now_ns)
        unions = {name: phase.union_ns for name, phase in times.phases.items()}
        row = msgspec.structs.replace(one, attrs={})
        line = SessionLine(
            row=row,
            ran_ns=times.total_ns,
            phases=unions,
            other_ns=times.other_ns,
            lag=expected_lag(one, versions),
        )
        lines.append(line)
    return SessionList(sessions=lines, matched=len(found), of=len(everyone))


def expected_selection(oracle: Oracle, scope: Scope, text: str) -> Selection:
    everyone = [one for one in oracle.sessions if counts_for(one, scope)]
    chosen = [one for one in everyone if does_match(oracle, one, text)]
    rest = [one for one in everyone if one not in chosen]
    unions = oracle.unions(everyone)
    details = detail_labels(
        (one.span_id, row.name, row.detail)
        for one in everyone
        for row in oracle.spans_of(one.span_id)
        if row.kind is Kind.PHASE and row.detail is not None
    )
    sides = [session_lengths(side, unions) for side in (rest, chosen)]
    named = {word.lstrip("-").replace(">", ":").split(":")[0] for word in text.split()}
    named |= {name.removeprefix("attr.") for name in named} | {f"attr.{name}" for name in named}
    return Selection(
        chosen=len(chosen),
        rest=len(rest),
        phases=compare(*sides),
        differences=differences(chosen, rest, excluded=named, details=details, phase_ns=unions),
    )


def session_lengths(sessions: Sequence[SessionRow], unions: dict[int, dict[str, int]]) -> Lengths:
    found: Lengths = {}
    for one in sessions:
        if one.is_measured and one.end_ns is not None:
            parts = {"session": one.end_ns - one.start_ns, **unions.get(one.span_id, {})}
            for name, part_ns in parts.items():
                found.setdefault(name, []).append((one.task_key, part_ns))
    return found


def difference(found: Any, wanted: Any, place: str = "") -> str | None:
    """Say where two answers first differ; whole answers are too long to read."""
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        pairs = [(f"{place}.{key}", found[key], wanted[key]) for key in wanted]
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = [(f"{place}[{n}]", a, b) for n, (a, b) in enumerate(zip(found, wanted))]  # noqa: B905
    else:
        return None if found == wanted else f"{place}: {found!r:.600} is not {wanted!r:.600}"
    return next(filter(None, (difference(a, b, where) for where, a, b in pairs)), None)


def plain(answer: Any) -> Any:
    return msgspec.to_builtins(answer, str_keys=True)


def asked(oracle: Oracle) -> list[Question]:
    """Give the questions about a run: every step, and sessions of every fate."""
    by_fate: dict[object, int] = {}
    for one in oracle.sessions:
        by_fate[one.status, one.outcome, one.step is None, one.attempt] = one.span_id
    return list(questions(sorted(oracle.step_spans()), list(by_fate.values())))


def check(store: RunStore, run: Path) -> None:
    oracle = Oracle(run, store.now_ns, store.offsets)
    wrong = {}
    source = Remembering(store)
    for question in asked(oracle):
        found, wanted = plain(ask(source, question)), plain(expected(oracle, question))
        if found != wanted:
            wrong[question] = difference(found, wanted)
    assert wrong == {}


def shortly_after(truth: RunTruth) -> int:
    """Give a time at which processes that wrote until the end count as alive."""
    return truth.end_ns + SECOND


@pytest.mark.parametrize("name", SHAPES)
def test_every_answer_is_that_of_a_naive_reading(name: str, tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", SHAPES[name])

    with RunStore(tmp_path / "run", threads=1, now_ns=shortly_after(truth)) as store:
        check(store, tmp_path / "run")


@pytest.mark.parametrize("name", ["overlapping", "running"])
def test_every_answer_is_the_same_about_a_run_that_was_sealed_while_it_grew(
    name: str, tmp_path: Path
) -> None:
    shape = msgspec.structs.replace(SHAPES[name], straggling_share=0.0)
    truth = generate_run(tmp_path / "whole", shape)

    with RunStore(grown(tmp_path), threads=1, now_ns=shortly_after(truth)) as store:
        grow(store, tmp_path / "whole")

        check(store, store.path)


def test_a_phase_begun_after_its_session_was_sealed_keeps_its_path(tmp_path: Path) -> None:
    shape = msgspec.structs.replace(SHAPES["overlapping"], straggling_share=1.0)
    truth = generate_run(tmp_path / "whole", shape)

    with RunStore(grown(tmp_path), threads=1, now_ns=shortly_after(truth)) as store:
        grow(store, tmp_path / "whole")
        paths = store.query("SELECT DISTINCT path FROM spans WHERE name = 'upload'")

    assert paths["path"].to_pylist() == ["session / upload"]


def grown(folder: Path) -> Path:
    """Make a run that has yet to grow."""
    (folder / "run" / "log").mkdir(parents=True)
    return folder / "run"


def grow(store: RunStore, whole: Path) -> None:
    """Let a run grow in three parts, and seal all but the last."""
    pieces = [thirds(path) for path in sorted((whole / "log").iterdir())]
    for number, piece in enumerate(zip(*pieces, strict=True)):
        for path, data in piece:
            with (store.path / "log" / path.name).open("ab") as log:
                log.write(data)
        store.refresh()
        if number < len(pieces[0]) - 1:
            assert store.seal()


def thirds(path: Path) -> list[tuple[Path, bytes]]:
    """Cut a log into three parts between its frames."""
    frames = [pack_frame(body) for body in scan_frames(path.read_bytes()).bodies]
    cuts = [len(frames) * n // 3 for n in range(4)]
    return [(path, b"".join(frames[a:b])) for a, b in pairwise(cuts)]


def test_a_reader_whose_clock_is_behind_counts_nothing_below_zero(tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", SHAPES["hanging"])

    with RunStore(tmp_path / "run", threads=1, now_ns=truth.end_ns - 60 * SECOND) as store:
        oracle = Oracle(tmp_path / "run", store.now_ns, store.offsets)
        found = ask(store, ("hotspots", StepScope(), "path", False)).hotspots

    wanted = oracle.hotspots(None, "path", outside=False)
    assert any(row.end_ns is None and row.start_ns > oracle.now_ns for row in oracle.spans)
    assert totals(found) == totals(wanted)
    assert min(totals(found).values()) >= 0


def totals(found: Hotspots) -> dict[str, int]:
    return {row.path: row.total_ns for row in found.rows}


def test_two_runs_are_compared_by_their_own_sessions(tmp_path: Path) -> None:
    stores, oracles = [], []
    for name in ("overlapping", "retried"):
        truth = generate_run(tmp_path / name, SHAPES[name])
        store = RunStore(tmp_path / name, threads=1, now_ns=shortly_after(truth))
        stores.append(store)
        oracles.append(Oracle(tmp_path / name, store.now_ns, store.offsets))

    found = compare_runs(stores[0], StepScope(), stores[1], StepScope(1, 2))

    for store in stores:
        store.close()
    assert found.first_sessions > found.second_sessions > 0
    assert found == expected_comparison(oracles[0], StepScope(), oracles[1], StepScope(1, 2))


def test_one_process_that_does_everything_gets_the_same_answers(tmp_path: Path) -> None:
    clock = FakeClock()
    with Tracer(run="run", dir=tmp_path, clock=clock) as tracer:
        for step in range(2):
            with tracer.step(step):
                for task in range(3):
                    roll_out(tracer, clock, f"math/{task}")
                with tracer.span("trainer.update", "compute"):
                    clock.advance(1)

    now_ns = clock.wall_ns() + SECOND
    with RunStore(tmp_path / "run", threads=1, now_ns=now_ns) as store:
        check(store, tmp_path / "run")


def roll_out(tracer: Tracer, clock: FakeClock, key: str) -> None:
    with tracer.task(key), tracer.session(sample=0) as session:
        tracer.event("begun", colour="blue")
        with tracer.phase("generate", model="policy", tokens=7):
            clock.advance(2)
            with tracer.phase("toolcall", tool="python"):
                clock.advance(1)
        clock.advance(0.5)
        session.finish("accepted", reward=0.5)
        tracer.annotate(session, consumed_step=1, colour="red")


@pytest.mark.parametrize("name", ["usual", "skewed", "overlapping", "retried", "running"])
def test_clocks_are_moved_to_where_they_should_be(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    generate_run(tmp_path / "run", shape)

    with RunStore(tmp_path / "run", threads=1) as store:
        for host in range(1, 4):
            offset = store.offsets.get(f"host-{host:02}", Offset())
            offsets_s = shape.clock_offsets_s
            wanted_ns = -round(offsets_s[host % len(offsets_s)] * SECOND)
            # A session is heard of up to 0.1 s after its end, so no host is known much better.
            assert abs(offset.offset_ns - wanted_ns) <= max(offset.error_ns or 0, SECOND // 10)


def test_the_runs_hold_everything_that_is_hard_to_get_right(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for name, shape in SHAPES.items():
        counts.update(oddities(tmp_path / name, shape))

    assert [oddity for oddity, count in counts.items() if not count] == []


def oddities(run: Path, shape: RunShape) -> dict[str, int]:
    """Count what few spans of a run are."""
    oracle = Oracle(run, shortly_after(generate_run(run, shape)), {})
    sessions, rows = oracle.sessions, oracle.spans
    parents = {row.span_id: row for row in rows}
    below = [(row, parents[row.parent_id]) for row in rows if row.parent_id in parents]
    ends = [
        (a.start_ns, a.end_ns, b.end_ns)
        for a, b in below
        if a.process == b.process and a.end_ns is not None and b.end_ns is not None
    ]
    unions = oracle.unions(sessions)
    facts = [fact.facts for late in oracle.facts.values() for fact in late]
    return {
        "open": sum(row.status is Status.OPEN for row in rows),
        "lost": sum(row.status is Status.LOST for row in rows),
        "a child that outlives its parent": sum(end > outer for _, end, outer in ends),
        "a child that starts after its parent": sum(start > outer for start, _, outer in ends),
        "a nested phase": sum(a.kind is b.kind is Kind.PHASE for a, b in below),
        "a child in another process": sum(
            a.process != b.process and a.session_id is not None for a, b in below
        ),
        "phases side by side": sum(
            sum(parts.values()) > length(oracle, oracle.session_of[one])
            for one, parts in unions.items()
        ),
        "a queue": sum(row.queue_ns is not None for row in rows),
        "a pause": sum(row.name == "paused" for row in rows),
        "a gate": sum(row.name.startswith("gate:") for row in rows),
        "slots": sum(metric.name == "slots" for metric in oracle.metrics),
        "stacks": len(oracle.stacks),
        "another attempt": sum(one.attempt > 0 for one in sessions),
        "a late verdict": sum("outcome" in fact for fact in facts),
        "consumed by a later step": sum(one.charged_step != one.step for one in sessions),
        "no step": sum(one.charged_step is None for one in sessions),
        "a deadline": sum(one.deadline_ns is not None for one in sessions),
        "a replica": sum("replica" in one.pool for one in sessions),
        "a step that runs": sum(row.end_ns is None for row in oracle.step_spans().values()),
    }
