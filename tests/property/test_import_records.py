import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.errors import CommandError
from rollscope.importing.documents import mended
from rollscope.importing.running import import_run
from rollscope.importing.values import seconds_to_ns
from rollscope.store.embedded import RunStore

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(1.7e9, 1.8e9),
    st.text(max_size=20),
    st.sampled_from(("accepted", "pending", "1763000000.5", "<script>", "\ud800", "9" * 5000)),
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_CALLS = st.lists(
    st.fixed_dictionaries({}, optional={"start_ts": _SCALARS, "end_ts": _SCALARS}), max_size=3
)
_SESSION = st.fixed_dictionaries(
    {"submit_ts": st.floats(1.7e9, 1.8e9) | _JSON, "session_id": st.integers(0, 3) | _JSON},
    optional={
        **dict.fromkeys(("task_id", "rank", "role", "status", "reason", "counters", "x"), _JSON),
        "finalized_ts": _SCALARS,
        "phases": _JSON | st.dictionaries(st.text(max_size=5), _CALLS, max_size=2),
    },
)
_EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from(("X", "i", "M", "B", "s")) | _JSON, "pid": st.integers(0, 2) | _JSON},
    optional={
        **dict.fromkeys(("tid", "ts", "dur", "cat"), _JSON),
        "name": st.sampled_from(("process_name", "thread_name", "rollscope_clock")) | _JSON,
        "args": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("rank", "role", "name", "unix_ns", "exception"), _JSON)
        ),
    },
)
_FIRST = {
    "areal-sessions": {"submit_ts": 1763000000.5, "session_id": 77, "status": "accepted"},
    "areal-perf": {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "args": {"rank": 0}},
}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(2.0**30, 2.0**31))
@settings(max_examples=200)
def test_seconds_become_what_their_text_says(value: float) -> None:
    exact = (Decimal(repr(value)) * 10**9).to_integral_value()
    expected = int(exact) if abs(value) < 2**62 // 10**9 else None
    assert seconds_to_ns(value) == expected


@given(_JSON.filter(lambda value: isinstance(value, dict | list)), st.data())
def test_a_text_cut_anywhere_can_be_closed(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    assert mended(text) is None
    end = data.draw(st.integers(1, len(text)))
    closed = mended(text[:end])
    json.loads(text if closed is None else closed)


@given(st.sampled_from(sorted(_FIRST)), st.lists(_SESSION | _EVENT, max_size=6))
@settings(max_examples=50, deadline=None)
def test_whatever_records_hold_each_is_accounted_for(name: str, records: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as made:
        path, run = Path(made, "x.jsonl"), Path(made, "run")
        lines = [json.dumps(record) + "\n" for record in (_FIRST[name], *records)]
        path.write_text("".join(lines))
        try:
            report = import_run([path], run)
        except CommandError as error:  # judged as a format that finds nothing in it
            raise AssertionError(str(error)) from error
        (file,) = report.files
        aside = sum(one.count for one in file.set_aside.values())
        assert file.read == len(lines)
        assert file.read == file.imported + file.duplicates + aside
        with RunStore(run) as store:
            assert store.problems == []
            assert store.query("SELECT count(*) AS n FROM spans").to_pylist()[0]["n"] >= 1
