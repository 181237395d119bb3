from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.parquet as pq
import pytest

from rollscope.answers.encoding import encode_answer
from rollscope.answers.questions import QUESTIONS
from rollscope.server import opened
from rollscope.server.routes import exports
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.served import Answer, Site, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

ASKED = [
    ("steps", {}),
    ("steps", {"scope": "all"}),
    ("phases", {}),
    ("hotspots", {}),
    ("sessions", {}),
    ("stuck", {}),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    generate_run(place / "first", RunShape.sized(1500))
    generate_run(place / "second one", RunShape.sized(800))
    (place / "no run").mkdir()
    return place


def at(place: Path, visit: Callable[[Site], Awaitable[T]], *, is_single: bool = False) -> T:
    async def scenario() -> T:
        async with served(place, is_single=is_single) as site:
            return await visit(site)

    return asyncio.run(scenario())


def without_now(value: Any) -> Any:
    """Leave out what the moment of asking makes."""
    if isinstance(value, dict):
        moving = ("now_ns", "age_ns", "quiet_ns")
        return {key: without_now(item) for key, item in value.items() if key not in moving}
    return [without_now(item) for item in value] if isinstance(value, list) else value


def test_answers_are_those_that_the_questions_give(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        return [
            await site.api(f"run/first/answer/{name}?" + "&".join(f"{k}={v}" for k, v in g.items()))
            for name, g in ASKED
        ]

    answers = at(runs, visit)
    with RunStore(runs / "first") as store:
        for (name, given), answer in zip(ASKED, answers, strict=True):
            expected = json.loads(encode_answer(QUESTIONS[name].ask(store, given)))
            assert without_now(answer.json) == without_now(expected), name


def test_the_list_names_every_run_and_what_is_known_of_it(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Any, Any]:
        before = (await site.api("runs")).json
        await site.api("run/second%20one/answer/steps")
        return before, (await site.api("runs")).json

    before, after = at(runs, visit)
    assert {run["name"] for run in before["runs"]} == {"first", "second one"}
    assert before["dir"] == str(runs)
    assert all(run["size_bytes"] > 0 and not run["is_alive"] for run in before["runs"])
    (opened_run,) = [run for run in after["runs"] if run["name"] == "second one"]
    assert opened_run["spans"] > 500
    assert opened_run["steps"] > 0


def test_a_single_run_is_all_there_is(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Any, Answer]:
        return (await site.api("runs")).json, await site.api("run/second%20one")

    listed, other = at(runs / "first", visit, is_single=True)
    assert [run["name"] for run in listed["runs"]] == ["first"]
    assert other.status == 404


def test_an_unknown_run_is_answered_with_those_there_are(runs: Path, tmp_path: Path) -> None:
    unknown = at(runs, lambda site: site.api("run/third/answer/steps"))
    assert unknown.status == 404
    assert "first" in unknown.json["advice"]
    assert "second one" in unknown.json["advice"]

    empty = at(tmp_path / "not made yet", lambda site: site.api("run/first"))
    assert empty.status == 404
    assert "rollscope demo" in empty.json["advice"]


def test_parameters_that_make_no_sense_are_answered_with_a_sentence(runs: Path) -> None:
    wrong = {
        "answer/steps?nothing=1": "it takes",
        "answer/steps?scope=later": "later",
        "answer/steps?scope=1&scope=2": "twice",
        "answer/sessions?filter=ran%3E%3E": "filter",
        f"answer/sessions?filter={'a' * 5000}": "too long",
        "export?what=passwords": "passwords",
        "export?what=steps&format=exe": "exe",
        "export?what=steps&step=x": "whole number",
        "export?what=steps&where=1": "where",
        "stack?session=xyz": "hexadecimal",
    }

    async def visit(site: Site) -> list[Answer]:
        return [
            await site.ask(f"/api/v1/run/first/{path}", "POST" if "stack" in path else "GET")
            for path in wrong
        ]

    for (path, told), answer in zip(wrong.items(), at(runs, visit), strict=True):
        assert answer.status == 400, path
        said = answer.json
        assert told in f"{said['error']} {said['advice']}", path


def test_what_the_run_does_not_have_is_not_found(runs: Path) -> None:
    async def visit(site: Site) -> list[int]:
        paths = ("answer/step?step=9999", "answer/session?session=1", "answer/nothing")
        return [(await site.api(f"run/first/{path}")).status for path in paths]

    assert at(runs, visit) == [404, 404, 404]


def test_an_answer_is_packed_and_sent_only_if_it_has_changed(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Answer, Answer, Answer]:
        path = "run/first/answer/steps"
        plain = await site.api(path, Accept_Encoding="identity")
        packed = await site.api(path, Accept_Encoding="gzip")
        return plain, packed, await site.api(path, If_None_Match=plain.headers["ETag"])

    plain, packed, unchanged = at(runs, visit)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_pages_that_ask_at_once_share_the_work(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = opened.OpenRun.ask

    async def counting(self: opened.OpenRun, *args: Any, **given: Any) -> Any:
        asked.append(args)
        return await ask(self, *args, **given)

    monkeypatch.setattr(opened.OpenRun, "ask", counting)

    async def visit(site: Site) -> set[bytes]:
        answers = await asyncio.gather(*[site.api("run/first/answer/phases") for _ in range(10)])
        return {answer.body for answer in answers}

    assert len(at(runs, visit)) == 1
    assert len(asked) == 1


def test_two_runs_can_be_compared(runs: Path) -> None:
    async def visit(site: Site) -> Answer:
        return await site.api("run/first/answer/compare?other=second%20one")

    answer = at(runs, visit)
    assert answer.status == 200, answer.json


def test_tables_can_be_taken_away(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        kinds = ("csv", "json", "parquet")
        return [await site.api(f"run/first/export?what=sessions&format={k}") for k in kinds]

    as_csv, as_json, as_parquet = at(runs, visit)
    rows = list(csv.DictReader(io.StringIO(as_csv.body.decode())))
    table = pq.read_table(io.BytesIO(as_parquet.body))
    ids = [f"{one:016x}" for one in table["session_id"].to_pylist()]
    assert [row["session_id"] for row in rows] == [row["session_id"] for row in as_json.json] == ids
    assert len(ids) > 10
    assert as_csv.headers["Content-Disposition"] == 'attachment; filename="sessions.csv"'


def test_more_rows_than_allowed_are_refused_with_what_to_do(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MOST_ROWS", 10)

    answer = at(runs, lambda site: site.api("run/first/export?what=spans"))
    assert answer.status == 413
    assert "fewer steps" in answer.json["advice"]


def test_a_question_that_takes_too_long_is_stopped(runs: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000) b WHERE a.range * b.range = 7"

    async def visit(site: Site) -> tuple[str, int]:
        run = await site.library.open("first")
        with pytest.raises(Exception, match="stopped") as caught:
            await run.ask(lambda store: store.query(endless), limit_s=0.3)
        return type(caught.value).__name__, (await site.api("run/first/answer/steps")).status

    assert at(runs, visit) == ("Failure", 200)


def test_the_schema_describes_every_answer(runs: Path) -> None:
    schema = at(runs, lambda site: site.api("schema")).json
    assert set(schema["questions"]) == set(QUESTIONS)
