"""The page of one session: turns, attempts, versions, and who waits at the same line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import rollscope as rs
from rollscope.answers.rows import sessions_with
from rollscope.answers.turns import SessionTurns, session_turns
from rollscope.store.embedded import RunStore
from rollscope.testing import generate_run
from tests.oracle import SECOND, SHAPES, Oracle


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunStore, Oracle]]:
    run = tmp_path_factory.mktemp("turns") / "run"
    truth = generate_run(run, SHAPES["running"])
    with RunStore(run, threads=1, now_ns=truth.end_ns + SECOND) as store:
        yield store, Oracle(run, store.now_ns, store.offsets)


def turns_of(store: RunStore, session_id: int) -> SessionTurns:
    return session_turns(store, f"{session_id:016x}")


def test_every_span_below_a_session_is_in_one_turn(running: tuple[RunStore, Oracle]) -> None:
    store, oracle = running
    for session in oracle.sessions[:10]:
        found = turns_of(store, session.span_id)
        spans = oracle._by_session.get(session.span_id, [])
        top = [one.span_id for one in spans if one.parent_id == session.span_id]
        placed = [span_id for turn in found.turns for span_id in turn.span_ids]
        assert sorted(placed) == sorted(top)
        for turn in found.turns:
            told = [oracle.known[one].record.attrs.get("turn") for one in turn.span_ids]
            assert all(one in (None, turn.number) for one in told)


def test_others_at_the_same_line_are_counted(running: tuple[RunStore, Oracle]) -> None:
    store, oracle = running
    last: dict[int, tuple[int, int, str]] = {}
    for stack in oracle.stacks:
        span = oracle.known[int(stack.span_id, 16)].row
        if span.status == "open" and span.session_id is not None:
            picture = (stack.time_ns, span.start_ns, stack.frames[-1])
            last[span.session_id] = max(last.get(span.session_id, (0, 0, "")), picture)
    assert len(last) > 2
    for session_id, (time_ns, _, line) in last.items():
        found = turns_of(store, session_id).awaits
        assert found is not None
        assert (found.time_ns, found.frame) == (time_ns, line)
        assert found.others_on_line == sum(one[2] == line for one in last.values()) - 1


def test_a_session_that_is_over_waits_nowhere(running: tuple[RunStore, Oracle]) -> None:
    store, oracle = running
    over = next(one for one in oracle.sessions if one.end_ns is not None)
    assert turns_of(store, over.span_id).awaits is None


def test_attempts_are_listed_in_order_with_their_errors(tmp_path: Path) -> None:
    rs.init(dir=tmp_path, run="run")
    ids = []
    with rs.task("a/1", step=3):
        for attempt in range(2):
            with rs.session(sample=0, attempt=attempt) as session:
                ids.append(session.id)
                with rs.phase("generate", version=5, turn=0):
                    pass
                if attempt == 0:
                    with pytest.raises(TimeoutError), rs.phase("toolcall", tool="python"):
                        raise TimeoutError("too slow")
                    session.finish("failed", reason="tool")
        with rs.session(sample=1):
            pass
    rs.shutdown()

    with RunStore(tmp_path / "run", threads=1) as store:
        found = session_turns(store, f"{ids[1]:016x}")
        assert len(sessions_with(store, ids)) == 2
    assert [(one.session_id, one.attempt, one.is_this) for one in found.attempts] == [
        (ids[0], 0, False),
        (ids[1], 1, True),
    ]
    (error,) = found.attempts[0].errors
    assert (error.name, error.detail, error.reason) == (
        "toolcall",
        "python",
        "TimeoutError: too slow",
    )
    assert (found.attempts[0].outcome, found.attempts[0].reason) == ("failed", "tool")
    assert found.attempts[1].errors == []
    assert [one.version for one in found.versions] == [5]
