"""Lines that look like ours and hold anything: each is accounted for, and the run can be read."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**62, 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["00000000000000ff", "0" * 31 + "1", "open", "ok", "accepted", "gauge"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
_KINDS = ("run", "process", "session", "phase", "span", "state", "event", "fact", "metric", "odd")
_GOOD: dict[str, Any] = {
    "process": "00000000000000aa",
    "trace_id": "0" * 31 + "1",
    "span_id": "0000000000000001",
    "event_id": "0000000000000002",
    "parent_id": "0000000000000003",
    "session_id": "0000000000000001",
    "name": "n",
    "category": "io",
    "start_ns": 1_763_000_000_000_000_000,
    "end_ns": 1_763_000_001_000_000_000,
    "time_ns": 1_763_000_000_500_000_000,
    "status": "ok",
    "outcome": "accepted",
    "reason": "r",
    "step": 3,
    "version_end": 4,
    "task_key": "t",
    "sample": 0,
    "group": "g",
    "lane": "l",
    "attrs": {"a": 1},
    "recorded": {"outcome": None},
    "facts": {"reward": 1.0},
    "type": "gauge",
    "labels": {"a": "b"},
    "value": 1.0,
    "count": 1,
    "buckets": {"1": 2},
    "host": "h",
    "pid": 1,
    "role": "rollout",
    "rank": 0,
    "schema": 1,
}


@st.composite
def _line(draw: st.DrawFn) -> dict[str, Any]:
    odd = draw(st.dictionaries(st.sampled_from(sorted(_GOOD)), _ANY, max_size=3))
    return {"kind": draw(st.sampled_from(_KINDS)), **_GOOD, **odd}


_START = {"kind": "session", **_GOOD}


@settings(max_examples=30)
@given(st.lists(_line(), max_size=20))
def test_any_line_is_kept_or_set_aside(lines: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, run = Path(folder, "in.jsonl"), Path(folder, "run")
        texts = [json.dumps(line) for line in (_START, *lines)]
        source.write_text("\n".join(texts) + "\n")
        (file,) = import_run([source], run).files
        aside = sum(one.count for one in file.set_aside.values())
        assert file.read == len(texts) == file.imported + file.duplicates + aside
        with RunStore(run) as store:
            assert not store.problems
            assert store.query("SELECT count(*) AS n FROM spans")["n"][0].as_py() >= 1
