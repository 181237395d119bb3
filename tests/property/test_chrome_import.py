"""Chrome traces with anything in them: nothing is raised, nothing is left out in silence."""

import json
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.chrome_events import PHASES
from rollscope.importing.running import import_run
from rollscope.importing.values import micros_to_ns
from rollscope.store.embedded import RunStore

_ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([2**63, -(2**63), 10**40, "0x1", "NaN", "7", "ProfilerStep#3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
_TIMES = st.integers(1_794_725_158_900_000, 1_794_725_158_900_009) | st.integers(0, 9) | _ODD
_EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from(sorted(PHASES)) | _ODD},
    optional={
        "name": st.sampled_from(["a", "b", "process_name", "thread_name"]) | _ODD,
        "cat": st.sampled_from(["c", "task::f", "compute", "session", "span,io"]) | _ODD,
        "ts": _TIMES,
        "dur": st.integers(0, 9) | _ODD,
        "pid": st.sampled_from([1, 2, "w"]) | _ODD,
        "tid": st.sampled_from([1, "worker:1"]) | _ODD,
        "id": st.sampled_from([1, "0x1"]) | _ODD,
        "id2": st.dictionaries(st.sampled_from(["local", "global"]), _ODD) | _ODD,
        "cname": _ODD,
        "args": st.dictionaries(
            st.sampled_from(["name", "step", "span_id", "task_id", "value", "traceback", "type"]),
            _ODD | st.sampled_from(["00ff", "00fe"]),
        )
        | _ODD,
    },
)
_OUTLINE = st.fixed_dictionaries(
    {},
    optional={
        "otherData": st.just({"writer": "rollscope"}) | _ODD,
        "schemaVersion": _ODD,
        "distributedInfo": st.just({"rank": 3}) | _ODD,
        "baseTimeNanoseconds": st.just(1_763_000_000_000_000_000) | _ODD,
        "viztracer_metadata": _ODD,
    },
)


@settings(max_examples=30, deadline=None)
@given(st.lists(_EVENT | _ODD, min_size=1, max_size=12), _OUTLINE, st.booleans())
def test_every_event_is_accounted_for(
    events: list[Any], outline: dict[str, Any], is_cut: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        text = json.dumps({"traceEvents": [{"ph": "M", "name": "x"}, *events], **outline})
        (folder / "trace.json").write_text(text[: len(text) * 2 // 3] if is_cut else text)
        report = import_run([folder / "trace.json"], folder / "run", format="chrome")
        (file,) = report.files
        aside = sum(one.count for one in file.set_aside.values())
        assert file.read == file.imported + file.duplicates + aside
        if not is_cut:
            assert file.read == len(events) + 1
        with RunStore(folder / "run") as store:
            spans = store.query("SELECT count(*) AS n FROM spans").to_pylist()[0]["n"]
            assert spans == sum(
                report.counts.get(name, 0) for name in ("spans", "spans without an end")
            )
    finally:
        shutil.rmtree(folder)


@given(st.integers(-(10**12), 8 * 10**15), st.sampled_from([0, 1, 2, 3]))
def test_microseconds_are_read_as_they_were_written(thousandths: int, digits: int) -> None:
    """Up to where floats no longer tell nanoseconds apart, every digit counts."""
    written = Decimal(thousandths) / 1000
    written = written.quantize(Decimal(1).scaleb(-digits))
    assert micros_to_ns(float(written)) == int(written * 1000)


@given(st.floats(2.0**50, 2.0**51, exclude_max=True))
def test_wall_times_in_microseconds_are_read_by_their_text(value: float) -> None:
    assert micros_to_ns(value) == int(Decimal(repr(value)) * 1000)
