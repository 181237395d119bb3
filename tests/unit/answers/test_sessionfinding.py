from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.answers.sessionfinding import find_session
from rollscope.errors import CommandError
from rollscope.exposing.histograms import shorten_middle
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = f"swe/{'deep/' * 40}issue"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    """Give a run of two tasks with two samples each; the second sample of each is the longer."""
    folder = tmp_path_factory.mktemp("runs")
    tracer = rs.Tracer(run="named", dir=str(folder))
    for key in ("gsm8k/1 of 7?", LONG):
        with tracer.task(key):
            outer = tracer.session(sample=1)
            with outer, tracer.session(sample=0):
                pass
    tracer.shutdown()
    with RunStore(folder / "named", threads=1) as opened:
        yield opened


def sessions(store: RunStore) -> list[dict[str, Any]]:
    sql = """
        SELECT trace_id, span_id, task_key, sample FROM spans WHERE kind = 'session'
        ORDER BY task_key, sample"""
    found: list[dict[str, Any]] = store.query(sql).to_pylist()
    return found


def test_a_session_is_found_by_task_and_sample_and_by_its_id(store: RunStore) -> None:
    for one in sessions(store):
        assert find_session(store, f"{one['task_key']}#{one['sample']}") == one["span_id"]
        assert find_session(store, f"{one['span_id']:016x}") == one["span_id"]


def test_a_trace_leads_to_its_longest_session(store: RunStore) -> None:
    for one in sessions(store):
        if one["sample"] == 1:
            assert find_session(store, one["trace_id"].hex()) == one["span_id"]
            assert find_session(store, one["trace_id"].hex().upper()) == one["span_id"]


def test_a_name_as_an_exemplar_shortens_it_is_found(store: RunStore) -> None:
    for one in sessions(store):
        name = f"{one['task_key']}#{one['sample']}"
        assert find_session(store, shorten_middle(name, 73)) == one["span_id"]


@pytest.mark.parametrize("name", ["f" * 32, "f" * 16, "gsm8k/2#0", "other…issue#0", "swe/…other#0"])
def test_who_is_not_there_is_not_found(store: RunStore, name: str) -> None:
    with pytest.raises(CommandError, match="has no session"):
        find_session(store, name)
