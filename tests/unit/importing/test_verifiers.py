import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.formats import Options, Place, importers
from rollscope.importing.running import import_run
from rollscope.importing.verifiers_survey import Layout, read_layout
from rollscope.importing.writing import RunWriter
from rollscope.store.embedded import RunStore

_EPISODES = Path(__file__).parents[2] / "fixtures" / "verifiers" / "traces.jsonl"
_T = 1794725170.0
_NS = 1794725170 * 10**9


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _trace(name: str = "t0", **more: Any) -> dict[str, Any]:
    agent = {"start": _T + 1, "end": _T + 5}
    timing = {"start": _T, "boot": {"start": _T, "end": _T + 1}, "agent": agent}
    base = {"version": 1, "id": name, "agent": {"name": "solver"}, "nodes": [], "calls": []}
    ends = {"is_completed": True, "ok": True, "errors": [], "timing": timing}
    return {**base, **ends, **more}


def _episode(name: str = "e0", *traces: Any, **more: Any) -> dict[str, Any]:
    base = {"id": name, "env": {"id": "gsm8k"}, "task": {"type": "T", "key": "gsm8k/1"}, "ok": True}
    return {**base, "traces": list(traces), **more}


def _call(start: float, end: float, **more: Any) -> dict[str, Any]:
    return {"model": "m", "time": {"start": _T + start, "end": _T + end}, **more}


def _update(trace: str, info: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "trace_id": trace, "info": info, "branches": [{"advantages": [0.5]}]}


def _write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _import(folder: Path, *records: Any) -> tuple[Report, Path]:
    file = _write(folder / "traces.jsonl", *records)
    return import_run([file], folder / "run"), folder / "run"


def test_every_sample_episode_is_a_session_with_its_fate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_EPISODES], run)
    assert [(file.read, file.imported) for file in report.files] == [(4, 4)]
    assert report.counts == {"sessions completed": 2, "sessions failed": 2, "tasks": 3}
    assert report.named_runs == ["run-a1"]
    rows = _ask(
        run,
        "SELECT task_key, group_key, sample, family, step, status, outcome, reason, "
        "version_start, version_end, reward FROM sessions ORDER BY group_key, sample",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("gsm8k/3", "g-11", 0, "math", 7, "ok", None, None, 5, 6, 0.0),
        ("gsm8k/3", "g-11", 1, "math", 7, "ok", None, None, 5, 6, 0.0),
        ("gsm8k/4", "g-12", 0, "math", 7, "error", "failed", "ProviderError", 5, 5, None),
        ("gsm8k/5", "g-13", 0, "math", 7, "error", "failed", "SandboxError", 6, 7, None),
    ]


def test_an_agent_is_a_span_with_its_stages_below_and_calls_in_its_work(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_EPISODES], run)
    rows = _ask(
        run,
        "SELECT s.kind, s.name, p.name AS parent FROM spans AS s JOIN spans AS p "
        "ON s.parent_id = p.span_id WHERE s.group_key = 'g-11' AND s.sample = 0 "
        "ORDER BY s.start_ns, s.kind, s.name",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("phase", "boot", "solver"),
        ("session", "session", "task"),
        ("span", "solver", "session"),
        ("phase", "setup", "solver"),
        ("phase", "agent", "solver"),
        ("phase", "generate", "agent"),
        ("phase", "generate", "agent"),
        ("phase", "finalize", "solver"),
        ("phase", "reward", "solver"),
    ]


def test_a_stage_with_two_zeros_was_not_reached(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_EPISODES], run)
    assert not _ask(run, "SELECT 1 FROM spans WHERE name = 'reward' AND group_key = 'g-12'")


def test_a_stage_that_a_finished_episode_left_open_is_lost_not_stuck(tmp_path: Path) -> None:
    timing = {"start": _T, "agent": {"start": _T, "end": _T + 3}, "scoring": {"start": _T + 2}}
    _, run = _import(tmp_path, _episode("e0", _trace(timing=timing)))
    rows = _ask(run, "SELECT status, end_ns - start_ns AS ns FROM spans WHERE name = 'reward'")
    assert rows == [{"status": "lost", "ns": 10**9}]


def test_an_error_that_was_passed_on_is_marked_above_the_call_it_came_from(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_EPISODES], run)
    rows = _ask(
        run,
        "SELECT kind, name, attrs->>'error.type' AS type, attrs->>'error.copied' AS copied "
        "FROM spans WHERE status = 'error' AND group_key = 'g-12' ORDER BY kind",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("phase", "generate", "ProviderError", None),
        ("session", "session", "ProviderError", "true"),
        ("span", "solver", "ProviderError", "true"),
    ]


def test_an_episode_without_a_trace_stands_behind_what_was_written_before(tmp_path: Path) -> None:
    report, run = _import(tmp_path, _episode("e0", _trace()), _episode("e1", ok=False))
    rows = _ask(run, "SELECT start_ns, end_ns, outcome FROM sessions ORDER BY start_ns")
    assert rows[1] == {"start_ns": _NS + 5 * 10**9, "end_ns": _NS + 5 * 10**9, "outcome": "failed"}
    assert report.guessed == {"time of a session": 1}


def test_tokens_from_the_cache_are_added_to_those_of_the_prompt(tmp_path: Path) -> None:
    calls = [
        _call(1, 2, usage={"prompt_tokens": 60, "completion_tokens": 5, "cached_input_tokens": 16}),
        _call(3, 4, usage={"prompt_tokens": 10, "completion_tokens": 7}),
    ]
    _, run = _import(tmp_path, _episode("e0", _trace(calls=calls)))
    rows = _ask(run, "SELECT tokens_in, tokens_out FROM phases WHERE name = 'generate' ORDER BY 1")
    assert [tuple(row.values()) for row in rows] == [(10, 7), (76, 5)]
    assert _ask(run, "SELECT tokens_in, tokens_out FROM sessions") == [
        {"tokens_in": 86, "tokens_out": 12}
    ]


def test_time_of_the_agent_outside_of_calls_is_the_harness(tmp_path: Path) -> None:
    calls = [_call(1, 3), _call(2, 3.5), _call(4.5, 9)]  # the agent works from 1 to 5
    _, run = _import(tmp_path, _episode("e0", _trace(calls=calls)))
    (row,) = _ask(run, "SELECT attrs->>'harness_s' AS s FROM spans WHERE name = 'agent'")
    assert row == {"s": "1.0"}


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [
        ({"a": {"score": 1.0, "weight": 0.5}, "b": {"score": -2.0, "weight": 0.25}}, 0.0),
        ({"a": {"score": 0.5}, "b": None}, 0.5),
        ({"a": 0.75}, 0.75),
        ({"a": None}, None),
        ({}, None),
    ],
)
def test_a_reward_is_the_sum_of_weighted_scores_and_null_is_no_score(
    tmp_path: Path, rewards: dict[str, Any], reward: float | None
) -> None:
    _, run = _import(tmp_path, _episode("e0", _trace(rewards=rewards)))
    assert _ask(run, "SELECT reward FROM sessions") == [{"reward": reward}]


def test_of_several_agents_those_that_learn_give_the_reward(tmp_path: Path) -> None:
    traces = [
        _trace(f"t{n}", rewards={"a": score}, agent={"name": "x", "trainable": trains})
        for n, (score, trains) in enumerate(((1.0, True), (0.0, True), (9.0, False)))
    ]
    report, run = _import(tmp_path, _episode("e0", *traces))
    assert _ask(run, "SELECT reward FROM sessions") == [{"reward": 0.5}]
    assert report.guessed == {"reward of several agents": 1}
    assert len(_ask(run, "SELECT 1 FROM spans WHERE kind = 'span'")) == 3


@pytest.mark.parametrize(
    ("path", "layout"),
    [
        ("out/rollouts/step_3/train/all/traces.jsonl", Layout(3, "train", False)),
        ("out/rollouts/step_3/eval/effective/traces.jsonl.gz", Layout(3, "eval", True)),
        ("out/traces/step_12/train/traces.jsonl", Layout(12, "train", False)),
        ("out/traces/step_12/eval.jsonl", Layout(12, "eval", False)),
        ("train/effective/traces.jsonl", Layout()),
    ],
)
def test_both_layouts_of_the_output_folder_are_read(path: str, layout: Layout) -> None:
    assert read_layout(path) == layout


def test_an_episode_in_all_and_in_effective_is_one_accepted_session(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts" / "step_4" / "train"
    _write(folder / "all" / "traces.jsonl", _episode("e0", _trace("t0")), _episode("e1", _trace()))
    _write(folder / "effective" / "traces.jsonl", _episode("e0", _trace("t0", info={"x": 1})))
    report = import_run([tmp_path / "rollouts"], tmp_path / "run")
    accounts = [(file.read, file.imported, file.duplicates) for file in report.files]
    assert sorted(accounts) == [(1, 1, 0), (2, 1, 1)]
    rows = _ask(tmp_path / "run", "SELECT sample, step, outcome, consumed_step FROM sessions")
    assert sorted(tuple(row.values()) for row in rows) == [
        (0, 4, "accepted", 4),
        (1, 4, None, None),
    ]
    assert report.guessed["step"] == 2
    assert report.counts["tasks"] == 1


def test_the_copy_that_was_trained_on_counts_in_whatever_order_they_come(tmp_path: Path) -> None:
    folder = tmp_path / "step_4" / "train"
    trained = _episode("e0", _trace("t0", info={"advantage": 0.5}))
    effective = _write(folder / "effective" / "traces.jsonl", trained)
    every = _write(folder / "all" / "traces.jsonl", _episode("e0", _trace("t0")))
    report = import_run([effective, every], tmp_path / "run")
    assert [(file.imported, file.duplicates) for file in report.files] == [(1, 0), (0, 1)]


def test_an_effective_evaluation_is_accepted_and_consumed_by_no_step(tmp_path: Path) -> None:
    file = tmp_path / "rollouts" / "step_4" / "eval" / "effective" / "traces.jsonl"
    _write(file, _episode("e0", _trace("t0")))
    import_run([file], tmp_path / "run")
    assert _ask(tmp_path / "run", "SELECT outcome, consumed_step FROM sessions") == [
        {"outcome": "accepted", "consumed_step": None}
    ]


def test_updates_fold_onto_their_trace_and_the_newest_wins(tmp_path: Path) -> None:
    step = tmp_path / "traces" / "step_4"
    _write(step / "train.jsonl", _episode("e0", _trace("t0")), _episode("e1", _trace("t1")))
    _write(
        step / "annotations" / "orchestrator.jsonl",
        _update("t0", {"train": {"effective": True, "trained_at_step": 5}, "advantage": 0.25}),
        _update("gone", {"train": {"effective": True}}),
    )
    again = _update("t0", {"train": {"trained_at_step": 6}})
    _write(step / "annotations" / "trainer.jsonl", again, again)
    report = import_run([tmp_path / "traces"], tmp_path / "run")
    accounts = {Path(file.path).name: file for file in report.files}
    lost = accounts["orchestrator.jsonl"].set_aside["an update of a trace that is not here"]
    assert lost.lines == [2]
    assert (accounts["trainer.jsonl"].imported, accounts["trainer.jsonl"].duplicates) == (1, 1)
    rows = _ask(tmp_path / "run", "SELECT outcome, consumed_step FROM sessions ORDER BY 2")
    assert [tuple(row.values()) for row in rows] == [("accepted", 6), (None, None)]
    (agent,) = _ask(
        tmp_path / "run",
        "SELECT attrs->>'advantage' AS a FROM spans WHERE attrs->>'advantage' > ''",
    )
    assert agent == {"a": "0.25"}


def test_what_the_trace_itself_says_of_training_counts_too(tmp_path: Path) -> None:
    info = {"train": {"effective": True, "trained_at_step": 8}}
    _, run = _import(tmp_path, _episode("e0", _trace(info=info)))
    assert _ask(run, "SELECT outcome, consumed_step FROM sessions") == [
        {"outcome": "accepted", "consumed_step": 8}
    ]


def test_a_trace_that_stands_alone_is_a_session_unless_an_episode_has_it(tmp_path: Path) -> None:
    task = {"task": {"key": "k"}}
    report, run = _import(
        tmp_path, _trace("t0", **task), _trace("t1", **task), _episode("e0", _trace("t1"))
    )
    (file,) = report.files
    assert (file.imported, file.duplicates) == (2, 1)
    rows = _ask(run, "SELECT attrs->>'session_id' AS name, task_key FROM sessions ORDER BY 1")
    assert [tuple(row.values()) for row in rows] == [("e0", "gsm8k/1"), ("t0", "k")]


def test_a_trace_that_goes_on_is_open_with_its_stage(tmp_path: Path) -> None:
    timing = {"start": _T, "boot": {"start": _T, "end": _T + 1}, "agent": {"start": _T + 1}}
    running = _trace(is_completed=False, ok=False, timing=timing, task={"key": "k"})
    _, run = _import(tmp_path, running)
    rows = _ask(run, "SELECT name, status FROM spans WHERE end_ns IS NULL ORDER BY name")
    assert [row["name"] for row in rows] == ["agent", "session", "solver", "task"]


def test_a_timeout_is_an_outcome_also_where_the_episode_went_well(tmp_path: Path) -> None:
    _, run = _import(
        tmp_path,
        _episode("e0", _trace(is_timeout=True)),
        _episode("e1", _trace(), ok=False, is_timeout=True),
    )
    rows = _ask(run, "SELECT status, outcome FROM sessions ORDER BY status")
    assert [tuple(row.values()) for row in rows] == [("error", "timeout"), ("ok", "timeout")]


def test_training_and_evaluation_with_equal_keys_are_kept_apart(tmp_path: Path) -> None:
    works = [{"type": kind, "step": 3} for kind in ("train", "eval")]
    episodes = [
        _episode(f"e{n}", _trace(f"t{n}"), run={"type": "train", "id": "r", "work": work})
        for n, work in enumerate([*works, None])
    ]
    report, run = _import(tmp_path, *episodes, _episode("e9", run={"type": "eval", "id": "r"}))
    assert report.counts["tasks"] == 4
    rows = _ask(run, "SELECT DISTINCT sample FROM sessions")
    assert rows == [{"sample": 0}]


def test_nothing_that_was_said_is_kept(tmp_path: Path) -> None:
    said = "do not tell"
    nodes = [{"message": {"role": "user", "content": said}, "token_ids": [1, 2]}] * 3
    trace = _trace(nodes=nodes, root_reply=said, tools=[{"name": said}], notes=said * 20)
    trace["info"] = {"note": said}
    task = {"type": "T", "key": "k", "data": {"prompt": said}}
    error = {"type": "E", "message": "m", "traceback": said}
    _, run = _import(tmp_path, _episode("e0", trace, task=task, ok=False, errors=[error]))
    assert not any(said.encode() in file.read_bytes() for file in run.rglob("*") if file.is_file())
    (agent,) = _ask(run, "SELECT attrs FROM spans WHERE kind = 'span'")
    told = json.loads(agent["attrs"])
    assert (told["messages"], told["tools"], told["notes_bytes"]) == (3, 1, 222)
    assert told["messages_bytes"] > 100


def test_unknown_plain_values_are_kept(tmp_path: Path) -> None:
    _, run = _import(tmp_path, _episode("e0", _trace(mood="fine"), seed=7))
    (session,) = _ask(run, "SELECT attrs->>'seed' AS seed FROM sessions")
    (agent,) = _ask(run, "SELECT attrs->>'mood' AS mood FROM spans WHERE kind = 'span'")
    assert (session["seed"], agent["mood"]) == ("7", "fine")


def test_a_newer_version_of_an_episode_replaces_the_older(tmp_path: Path) -> None:
    old, new = _episode("e0", _trace(), ok=False), _episode("e0", _trace())
    report, run = _import(tmp_path, old, new, new)
    (file,) = report.files
    assert (file.imported, file.duplicates) == (1, 1)
    assert file.set_aside["an older version of an episode"].lines == [1]
    assert _ask(run, "SELECT status FROM sessions") == [{"status": "ok"}]


@pytest.mark.parametrize(
    "odd",
    [
        _episode(id=["x"], env=7, task=[], group="g", run=[1], errors="no"),
        _episode("e1", None, 7, "x", [], {}, {"timing": 5, "calls": {"a": 1}, "agent": []}),
        _episode("e1", _trace(timing={"start": "x", "boot": [1], "agent": {"start": 1e300}})),
        _episode("e1", _trace(calls=[None, {"time": 4, "usage": [], "error": 5}, _call(9, 2)])),
        _episode("e1", _trace(rewards={"a": {"score": 10**400}, "b": [1], "c": 1e308, "d": True})),
        _episode("e1", _trace(metrics={"x": "y", "z": float("inf")}, agent={"name": "\ud800"})),
        _episode("e1", _trace(agent={"name": "<script>" * 1000}), task={"key": "\ud800" * 9000}),
        _episode("e1", _trace(), run={"work": {"step": True, "policy": {"start": "x", "end": []}}}),
        _episode("e1", _trace(timing={"start": 12.5, "boot": {"start": 12.5, "end": 13.0}})),
        {"traces": {}, "task": None, "ok": "yes"},
        {"version": 1, "trace_id": None, "info": 4, "branches": 7},
        {"version": 1, "trace_id": [1], "info": {"train": [1], "advantage": {}}, "branches": []},
        {"timing": None, "nodes": 4, "calls": "x", "task": 3},
    ],
)
def test_odd_records_raise_nothing_and_are_accounted_for(tmp_path: Path, odd: Any) -> None:
    report, run = _import(tmp_path, odd, _episode("good", _trace("good")))
    (file,) = report.files
    aside = sum(one.count for one in file.set_aside.values())
    assert file.read == 2 == file.imported + file.duplicates + aside
    assert len(_ask(run, "SELECT 1 FROM sessions")) == file.imported
    assert _ask(run, "SELECT 1 FROM sessions WHERE attrs->>'session_id' = 'good'")


def test_a_file_cut_anywhere_gives_the_whole_lines_before_the_cut(tmp_path: Path) -> None:
    whole = _EPISODES.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    for number, cut in enumerate(range(ends[0] + 2, len(whole), 1501)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "traces.jsonl").write_bytes(whole[:cut])
        (file,) = import_run([folder / "traces.jsonl"], folder / "run").files
        complete = sum(1 for end in ends if end < cut)
        assert file.imported == complete
        assert [*file.set_aside] == ["torn"] or cut - 1 in ends


def test_growth_and_copies_give_the_same_ids(tmp_path: Path) -> None:
    lines = _EPISODES.read_bytes().splitlines(keepends=True)
    first, more = tmp_path / "a" / "traces.jsonl", tmp_path / "b" / "traces.jsonl"
    for path, held in ((first, lines[:2]), (more, lines)):
        path.parent.mkdir()
        path.write_bytes(b"".join(held))
        import_run([path], path.parent / "run")
    query = "SELECT span_id, start_ns, end_ns, sample FROM spans WHERE kind != 'task'"
    early, late = (
        {tuple(row.values()) for row in _ask(path.parent / "run", query)} for path in (first, more)
    )
    assert len(early) == 17
    assert early < late


def test_its_state_survives_pickling_between_the_passes(tmp_path: Path) -> None:
    report = Report(run="run")
    held = importers(RunWriter(tmp_path, report, {}), report, Options())["verifiers"]
    file = FileAccount(path=str(_EPISODES), format="verifiers")
    lines = [
        (Place(file, 0, number), raw)
        for number, raw in enumerate(_EPISODES.read_bytes().splitlines(), 1)
    ]
    for place, raw in [*lines, *lines]:
        held.survey(place, raw)
    held.settle()
    again = pickle.loads(pickle.dumps(held))  # noqa: S301  (made right here)
    assert [again.take(place, raw) for place, raw in lines] == [""] * 4
    other = Place(file, 1, 1)
    assert again.take(other, lines[0][1]) == "duplicate"
