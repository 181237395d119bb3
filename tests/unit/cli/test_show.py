from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.answers.session import StackDetail, one_session
from rollscope.screens.session import session_screen
from rollscope.screens.tables import Screen
from rollscope.screens.words import place_bar
from rollscope.store.embedded import RunStore
from rollscope.testing import RunTruth
from tests.unit.cli.cases import (
    Out,
    assert_fits,
    make_empty_run,
    make_hostile_run,
    make_run,
    read,
    read_json,
    refuse,
    set_screen,
)

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunTruth]:
    path = tmp_path_factory.mktemp("runs") / "small"
    return path, make_run(path)


@pytest.fixture(scope="module")
def run(made: tuple[Path, RunTruth]) -> Path:
    return made[0]


@pytest.fixture(scope="module")
def session(run: Path) -> str:
    """Give the id of an accepted session with tools."""
    with RunStore(run) as store:
        table = store.query(
            "SELECT s.session_id AS id FROM sessions AS s JOIN phases AS p USING (session_id) "
            "WHERE s.outcome = 'accepted' AND p.name = 'toolcall' ORDER BY s.start_ns LIMIT 1"
        )
    return f"{table['id'][0].as_py():016x}"


def test_the_first_line_says_what_became_of_it(run: Path, session: str, capsys: Out) -> None:
    text = read(capsys, "show", str(run), session)
    answer = read_json(capsys, "show", str(run), session)["session"]
    name = f"{answer['task_key']}#{answer['sample']}"
    assert text.startswith(f"{name} ran for ")
    assert f"and was accepted, reward {answer['reward']:.3f}." in text.splitlines()[0]
    assert f"id {session}" in text
    assert "after waiting" in text or not answer["waited_ns"]
    assert f"on {answer['host']} / {answer['pool']}, for step {answer['step']}" in text


def test_its_parts_make_the_whole(run: Path, session: str, capsys: Out) -> None:
    answer = read_json(capsys, "show", str(run), session)
    shares = sum(phase["share_ns"] for phase in answer["phases"].values())
    assert shares + answer["other_ns"] == answer["total_ns"]
    text = read(capsys, "show", str(run), session)
    assert "other (in no phase)" in text
    assert "the whole session" in text


def test_its_spans_are_a_tree_on_its_time_line(run: Path, session: str, capsys: Out) -> None:
    lines = read(capsys, "show", str(run), session).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("What it did"))
    body = lines[start + 2 :]
    assert body[0].startswith("generate policy")
    assert body[1].startswith("  http.request")
    assert "+0 s" in body[0]
    assert "tokens=" in body[0]


def test_its_siblings_are_listed_and_itself_is_marked(run: Path, session: str, capsys: Out) -> None:
    text = read(capsys, "show", str(run), session)
    assert "Its group: 4 sessions of this task and step" in text
    (marked,) = (line for line in text.splitlines() if line.startswith("> "))
    assert marked.endswith(session)


def test_a_lost_session_says_why(made: tuple[Path, RunTruth], capsys: Out) -> None:
    run, truth = made
    text = read(capsys, "show", str(run), truth.stuck[0])
    assert " was lost after " in text.splitlines()[0]


def test_an_open_session_says_first_where_it_waits(made: tuple[Path, RunTruth]) -> None:
    run, truth = made
    with RunStore(run, now_ns=truth.end_ns + 2 * SECOND) as store:
        answer = one_session(store, truth.stuck[0])
    frames = ["/app/loop.py:3 main", "/app/browser.py:64 fetch"]
    leaf = answer.spans[-1].span.span_id
    answer.stacks = [StackDetail(span_id=leaf, time_ns=answer.now_ns, task="t", frames=frames)]
    text = session_screen(answer, Screen(width=80))
    assert_fits(text)
    assert " has been open for " in text.splitlines()[0]
    assert "no reward yet" in text
    assert text.index("Where toolcall ") < text.index("Where its time went")
    assert "    /app/browser.py:64 fetch" in text
    assert " open" in text


def test_a_session_is_found_by_task_and_sample_in_the_newest_run(
    tmp_path: Path, capsys: Out
) -> None:
    rs.init(run="only", dir=tmp_path)
    with rs.task("gsm8k/8421"), rs.session(sample=3) as session:
        rs.event("first-token", chars=12)
        session.finish("accepted", reward=1.0, reason="accepted")
    rs.shutdown()
    text = read(capsys, "show", str(tmp_path / "only"), "gsm8k/8421#3")
    assert text.startswith("gsm8k/8421#3 ran for ")
    assert " and was accepted, reward 1.000.\n" in text
    assert "first-token" in text
    assert "chars=12" in text


def test_a_run_alone_is_not_enough(run: Path, capsys: Out) -> None:
    code, complaint = refuse(capsys, "show", str(run))
    assert code == 2
    assert "which session of" in complaint


def test_an_unknown_session_is_told(run: Path, tmp_path: Path, capsys: Out) -> None:
    assert refuse(capsys, "show", str(run), "f" * 16)[0] == 1
    assert "tasks are named like" in refuse(capsys, "show", str(run), "dream/1#1")[1]
    empty = make_empty_run(tmp_path / "empty")
    assert "it has no sessions" in refuse(capsys, "show", str(empty), "a#1")[1]


def test_many_spans_are_cut_unless_all_are_asked_for(tmp_path: Path, capsys: Out) -> None:
    rs.init(run="long", dir=tmp_path)
    with rs.task("t/1"), rs.session(sample=0):
        for _ in range(50):
            with rs.phase("generate"):
                pass
    rs.shutdown()
    run = str(tmp_path / "long")
    assert "10 more spans; --all shows them." in read(capsys, "show", run, "t/1#0")
    assert "more spans" not in read(capsys, "show", run, "t/1#0", "--all")


def test_it_fits_the_terminal(run: Path, session: str) -> None:
    with RunStore(run) as store:
        answer = one_session(store, session)
    for width in (80, 100, 160):
        assert_fits(session_screen(answer, Screen(width=width)), width)


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    hostile = make_hostile_run(tmp_path / "hostile")
    with RunStore(hostile) as store:
        found = store.query("SELECT session_id AS id FROM sessions")["id"].to_pylist()
    text = read(capsys, "show", str(hostile), f"{found[0]:016x}")
    assert_fits(text)
    assert "Attributes" in text
    assert "Events" in text


@pytest.mark.parametrize(
    ("low", "high", "drawn"),
    [
        (0.0, 1.0, "##########"),
        (0.0, 0.5, "#####     "),
        (0.5, 0.5, "     #    "),
        (1.0, 1.0, "         #"),
        (-1.0, 2.0, "##########"),
    ],
)
def test_a_stretch_is_drawn_where_it_lies(low: float, high: float, drawn: str) -> None:
    assert place_bar(low, high, 10, is_unicode=False) == drawn
