from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.store.embedded import RunStore
from tests.builders import make_batch, make_header, write_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ({"rank": 3, "role": "rollout", "actor": "Worker"}, "rollout 3"),
        ({}, "{host}:{pid}"),
        ({"role": "receiver"}, "receiver ({host}:{pid})"),
        ({"role": "rollout", "actor": "Worker"}, "Worker ({host}:{pid})"),
        ({"actor": "Worker", "actor_name": "reward-0"}, "reward-0 ({host}:{pid})"),
    ],
)
def test_a_process_goes_by_its_rank_or_its_actor_or_its_place(
    tmp_path: Path, said: dict[str, object], title: str
) -> None:
    header = make_header(**{"rank": None, **said})
    (tmp_path / "log").mkdir()
    write_log(tmp_path / "log" / "a.rsl", [make_batch(0, header=header)])
    with RunStore(tmp_path) as store:
        (row,) = store.query("SELECT title FROM processes").to_pylist()
    assert row["title"] == title.format(host=header.host, pid=header.pid)
