"""Answers in few bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rollscope.reports.compact import Compactor, KnownSessions
from tests.unit.reports.golden_report import GOLDEN, make_compact, make_nested
from tests.unit.reports.inverse import Expander

_SCALARS = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=3)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_ANSWERS = st.recursive(
    _SCALARS | _FLOATS,
    lambda part: (
        st.lists(part, max_size=8) | st.dictionaries(st.sampled_from("abcde"), part, max_size=4)
    ),
    max_leaves=40,
)


@given(_ANSWERS)
def test_any_answer_is_read_as_it_was(answer: object) -> None:
    written = json.loads(json.dumps(Compactor().write(answer)))
    assert Expander().expand(written) == answer


def test_the_golden_files_are_what_is_written() -> None:
    golden = json.loads((GOLDEN / "compact.json").read_text())
    assert golden == json.loads(json.dumps(make_compact()))
    assert (GOLDEN / "nested.bin").read_bytes() == make_nested()
    assert Expander(golden["lines"]).expand(golden["written"]) == golden["answer"]


def test_what_the_list_of_sessions_says_is_not_said_again() -> None:
    golden = make_compact()
    rows = golden["written"]["rows"][2]
    assert rows["session_id"][0] == 7
    assert rows["start_ns"] == [8, "start_ns"]
    assert golden["written"]["points"]["ran_ns"] == [8, "ran_ns"]


def test_a_table_that_differs_from_the_list_is_told_itself() -> None:
    ids = ["a", "b", "c", "d"]
    lines = [{"row": {"span_id": one, "start_ns": 4}} for one in ids]
    answer = {"sessions": ids, "start_ns": [4, 4, 5, 4]}
    written = Compactor(KnownSessions(ids, lines)).write(answer)
    assert written["start_ns"][0] != 8
    assert Expander(lines).expand(written) == answer


def test_times_of_long_columns_only_are_rounded() -> None:
    long = [one * 1_000_003 for one in range(300)]
    rounded = Expander().expand(Compactor(unit_ns=100_000).write({"ran_ns": long, "count": long}))
    assert rounded["count"] == long
    assert all(one % 100_000 == 0 for one in rounded["ran_ns"])
    assert max(abs(a - b) for a, b in zip(rounded["ran_ns"], long, strict=True)) <= 50_000
    assert (
        Expander().expand(Compactor(unit_ns=100_000).write({"ran_ns": long[:9]}))["ran_ns"]
        == (long[:9])
    )
