import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import CommandError
from rollscope.importing.running import import_run
from rollscope.importing.verifiers_live import Following
from rollscope.store.embedded import RunStore

_EPISODES = Path(__file__).parents[2] / "fixtures" / "verifiers" / "traces.jsonl"


def _sessions(store: RunStore) -> list[tuple[Any, ...]]:
    store.refresh()
    rows = store.query(
        "SELECT task_key, sample, status, outcome, consumed_step FROM sessions ORDER BY 1, 2"
    )
    return [tuple(row.values()) for row in rows.to_pylist()]


def _append(path: Path, *parts: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        file.write(b"".join(parts))


def _update(trace: str, step: int) -> bytes:
    info = {"train": {"effective": True, "trained_at_step": step}}
    told = {"version": 1, "trace_id": trace, "info": info, "branches": []}
    return json.dumps(told).encode() + b"\n"


@pytest.fixture
def lines() -> list[bytes]:
    return _EPISODES.read_bytes().splitlines(keepends=True)


def test_a_reader_sees_what_a_growing_folder_holds(tmp_path: Path, lines: list[bytes]) -> None:
    folder, run = tmp_path / "out", tmp_path / "runs" / "out"
    traces = folder / "traces" / "step_7" / "train.jsonl"
    _append(traces, lines[0], lines[1][:40])
    following = Following(folder, run)
    assert following.poll() == 1
    with RunStore(run) as store:
        assert _sessions(store) == [("gsm8k/3", 0, "ok", None, None)]
        _append(traces, lines[1][40:], lines[2], lines[3])
        assert following.poll() == 3
        assert len(_sessions(store)) == 4
        trace = json.loads(lines[0])["traces"][0]["id"]
        _append(folder / "traces" / "step_7" / "annotations" / "trainer.jsonl", _update(trace, 9))
        assert following.poll() == 1
        assert _sessions(store)[0] == ("gsm8k/3", 0, "ok", "accepted", 9)
        assert following.poll() == 0
        following.close()
    with RunStore(run) as store:
        assert len(_sessions(store)) == 4
        assert store.query("SELECT 1 FROM spans WHERE end_ns IS NULL").num_rows == 0
        assert store.query("SELECT status FROM processes").to_pylist() == [{"status": "imported"}]


def test_what_was_followed_is_what_would_have_been_imported(
    tmp_path: Path, lines: list[bytes]
) -> None:
    file = tmp_path / "out" / "traces.jsonl"
    _append(file, lines[0])
    following = Following(tmp_path / "out", tmp_path / "live")
    for line in lines[1:]:
        following.poll()
        _append(file, line)
    following.poll()
    following.close()
    import_run([file], tmp_path / "whole")
    query = (
        "SELECT span_id, parent_id, kind, name, status, start_ns, end_ns, sample, outcome, attrs "
        "FROM spans ORDER BY span_id"
    )
    with RunStore(tmp_path / "live") as live, RunStore(tmp_path / "whole") as whole:
        assert live.query(query).to_pylist() == whole.query(query).to_pylist()
    assert (following.report.files[0].read, following.report.files[0].imported) == (4, 4)


def test_an_episode_that_is_trained_on_later_becomes_accepted(
    tmp_path: Path, lines: list[bytes]
) -> None:
    folder = tmp_path / "rollouts" / "step_8" / "train"
    _append(folder / "all" / "traces.jsonl", lines[0])
    following = Following(tmp_path / "rollouts", tmp_path / "run")
    following.poll()
    _append(folder / "effective" / "traces.jsonl", lines[0])
    following.poll()
    following.close()
    with RunStore(tmp_path / "run") as store:
        assert _sessions(store) == [("gsm8k/3", 0, "ok", "accepted", 8)]
    assert sorted(file.duplicates for file in following.report.files) == [0, 1]


def test_other_lines_of_the_folder_are_set_aside_and_counted(
    tmp_path: Path, lines: list[bytes]
) -> None:
    _append(tmp_path / "out" / "metrics.jsonl", b'{"step": 1, "time": 2}\n', b"\xff{\n", b"\n")
    _append(tmp_path / "out" / "traces.jsonl", *lines[:1])
    following = Following(tmp_path / "out", tmp_path / "run")
    assert following.poll() == 3
    following.close()
    metrics = following.report.files[0]
    assert {why: one.lines for why, one in metrics.set_aside.items()} == {
        "of no format that is read": [1],
        "bad: no JSON object": [2],
    }


def test_a_run_of_its_own_is_made_anew_and_no_other_is_touched(
    tmp_path: Path, lines: list[bytes]
) -> None:
    _append(tmp_path / "out" / "traces.jsonl", *lines)
    for _ in range(2):
        following = Following(tmp_path / "out", tmp_path / "run")
        following.poll()
        following.close()
    with RunStore(tmp_path / "run") as store:
        assert len(_sessions(store)) == 4
    (tmp_path / "run" / "following.json").unlink()
    with pytest.raises(CommandError, match="was not made from a folder"):
        Following(tmp_path / "out", tmp_path / "run")
    with pytest.raises(CommandError, match="there is no folder"):
        Following(tmp_path / "nowhere", tmp_path / "other")
    assert not (tmp_path / "other").exists()
