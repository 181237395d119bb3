"""What the page on SQL says is what the store has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollscope.store.embedded import RunStore
from rollscope.store.prompt import SHOWN, Prompt
from rollscope.testing import RunShape, generate_run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sql.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    run = tmp_path_factory.mktemp("runs") / "a"
    generate_run(run, RunShape(steps=2, tasks_per_step=6))
    with RunStore(run) as store, Prompt(store) as prompt:
        yield prompt


def columns_of(prompt: Prompt, view: str) -> set[str]:
    (answer,) = prompt.ask(f"FROM {view} LIMIT 0")
    return set(answer.table.column_names)


def test_there_are_five_queries() -> None:
    assert len(QUERIES) == 5


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_every_query_finds_something(prompt: Prompt, query: str) -> None:
    (answer,) = prompt.ask(query)
    assert answer.table.num_rows > 0
    assert all(column.null_count < len(column) for column in answer.table.columns[:2])


@pytest.mark.parametrize("view", ["spans", "sessions", "processes"])
def test_every_column_of_the_large_views_is_described(prompt: Prompt, view: str) -> None:
    section = PAGE.split(f"### {view}\n")[1].split("\n### ")[0]
    heads = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    described = [name for head in heads for name in re.findall(r"`(\w+)`", head)]
    assert len(described) == len(set(described))
    assert set(described) == columns_of(prompt, view)


def test_every_column_of_the_small_views_is_listed(prompt: Prompt) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.split("| view | columns |")[1], re.MULTILINE)
    for view, columns in rows:
        assert set(re.findall(r"`(\w+)`", columns)) == columns_of(prompt, view), view
    same = {"steps", "tasks", "phases", "states"}
    assert {view for view, _ in rows} | {"spans", "sessions", "processes"} | same == set(SHOWN)
    assert all(columns_of(prompt, view) == columns_of(prompt, "spans") for view in same)


def test_the_example_of_an_id_can_be_read(prompt: Prompt) -> None:
    (example,) = set(re.findall(r"id\('(\w+)'\)", PAGE))
    (answer,) = prompt.ask(f"SELECT id_text(id('{example}'))")
    assert answer.table[0][0].as_py() == example
