"""Files of XTuner and RL-Insight, with anything in them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.running import import_run
from rollscope.importing.xtuner_pairs import OPEN, WHOLE, Pairs, Stage, What

_MOMENT = st.one_of(
    st.sampled_from([0, -1, 5.5, 1794728682, 1794728683.25, 1794728684 * 10**9, "1794728682.5"]),
    st.floats(),
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
_NAMES = st.sampled_from(["a", "b", 1, "1", "experiment=e/sample=1/session=2/traj=0", "\ud800"])
_NUMBERS = st.sampled_from([0, 1, 2.5, "3", -1, 10**18, 2**70])
_SAID = {
    "sample": _NAMES,
    "session": _NAMES,
    "traj": _NAMES,
    "state_lane_id": _NAMES,
    "process_id": _NAMES,
    "monitor.trace_segment": st.sampled_from(["state_interval", "duration"]),
    "monitor.trace_source": st.sampled_from(["session", "task", "gateway"]),
    "status": st.sampled_from(["success", "empty", "odd"]),
    "title": st.just("reward 0.5 · 2 turns"),
}
_LIKELY: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "xtuner-producer": {
        "trace_id": _NAMES,
        "stage": st.sampled_from(
            ["a.start", "a.end", "a.error", "xtuner.agent_loop.generate_sample.start", "c"]
        ),
        "timestamp_s": _MOMENT,
        "status": st.sampled_from(["init", "completed", "odd"]),
        "elapsed_s": _NUMBERS,
        "error_msg": _NAMES,
        "train_step": _NUMBERS,
        "worker_rank": _NUMBERS,
    },
    "xtuner-sandbox": {
        "ts": _MOMENT,
        "event": st.sampled_from(["enter", "exit"]),
        "uid": _NAMES,
        "stage": st.sampled_from(["run_total", "infer", "x"]),
        "duration_ms": _NUMBERS,
        "ok": st.booleans(),
        "err": _NAMES,
        "group_id": _NAMES,
    },
    "rl-insight": {
        "kind": st.sampled_from(["trace", "gauge", "counter", "histogram"]),
        "name": st.sampled_from(["turn_1", "agent_session", "agent_loop_traj_info", "x"]),
        "start_time_ns": _MOMENT,
        "end_time_ns": _MOMENT,
        "attributes": st.fixed_dictionaries({}, optional=_SAID),
        "labels": st.fixed_dictionaries({}, optional=_SAID),
        "value": _NUMBERS,
    },
}
_FATE = {"ts": _MOMENT, "uid": _NAMES, "final": st.sampled_from(["COMPLETED", "odd", None])}


def _check(format_name: str, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "some.jsonl")
        file.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        report = import_run([file], Path(folder, "run"), format=format_name)
    (account,) = report.files
    aside = sum(one.count for one in account.set_aside.values())
    assert account.read == account.imported + account.duplicates + aside
    assert account.read == len(lines)


@pytest.mark.parametrize("format_name", _LIKELY)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_a_record_holds_it_is_accounted_for(format_name: str, data: st.DataObject) -> None:
    likely = {name: one | one | _ANYTHING for name, one in _LIKELY[format_name].items()}
    record = st.fixed_dictionaries(likely) | st.fixed_dictionaries(_FATE)
    records = data.draw(st.lists(record, min_size=1, max_size=8))
    _check(format_name, [json.dumps(record) for record in records])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_a_line_of_metrics_holds_it_is_accounted_for(lines: list[str]) -> None:
    _check("prometheus", lines)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=30))
def test_pairing_is_that_of_one_stack_for_each_name(edges: list[tuple[str, bool]]) -> None:
    pairs = Pairs(lambda _: Stage(3))
    stacks: dict[str, list[int]] = {"a": [], "b": []}
    closed, lonely = {}, set()
    for at, (name, is_start) in enumerate(edges):
        what = What.START if is_start else What.END
        pairs.add(at, b"%d" % at, "s", name, what, 10**18 + at, 0)
        if is_start:
            stacks[name].append(at)
        elif stacks[name]:
            closed[at] = stacks[name].pop()
        else:
            lonely.add(at)
    pairs.settle(lambda session, events: None)
    begun = {at: pairs.begin[at] - 10**18 for at in range(len(edges)) if pairs.fate[at] == WHOLE}
    assert begun == closed | {at: at for at in lonely}
    still_open = {at for at in range(len(edges)) if pairs.fate[at] == OPEN}
    assert still_open == {*stacks["a"], *stacks["b"]}
