import json
from pathlib import Path

from rollscope.analysis.wording import (
    say_count,
    say_ns,
    say_seconds,
    say_share,
    say_sum,
    say_where,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "durations.json"
SUMS = GOLDEN.with_name("sums.json")
"""The page's tests read them too: one number reads the same wherever it stands."""


def test_durations_are_written_as_on_the_page() -> None:
    for ns, said in json.loads(GOLDEN.read_text()):
        assert say_ns(ns) == said
    assert say_ns(-3_000_000_000) == "-3.00 s"
    assert say_seconds(4.82) == "4.82 s"


def test_the_parts_of_a_sum_add_up_as_they_read() -> None:
    for whole_ns, parts_ns, whole, parts in json.loads(SUMS.read_text()):
        assert say_sum(whole_ns, parts_ns) == (whole, parts)


def test_shares_are_whole_per_cent_unless_tiny() -> None:
    assert say_share(31, 100) == "31 %"
    assert say_share(0.004) == "0.4 %"
    assert say_share(0) == say_share(3, 0) == "0 %"


def test_counts_have_their_plural() -> None:
    assert say_count(1, "session") == "1 session"
    assert say_count(1200, "session") == "1,200 sessions"
    assert say_count(2, "process") == "2 processes"


def test_a_phase_is_named_with_its_detail() -> None:
    assert say_where("toolcall", "browser") == "toolcall `browser`"
    assert say_where("generate", None) == "generate"
