import pytest

from rollscope.analysis.wording import say_count, say_ns, say_share, say_where

MS = 1_000_000
S = 1_000 * MS


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (0, "0 s"),
        (400_000, "0 ms"),
        (850 * MS, "850 ms"),
        (999_600_000, "1 s"),
        (S, "1 s"),
        (4_200 * MS, "4.2 s"),
        (9_960 * MS, "10 s"),
        (14 * S, "14 s"),
        (312 * S, "312 s"),
        (599_700 * MS, "600 s"),
        (14 * 60 * S, "14 min"),
        (2 * 3600 * S, "2.0 h"),
        (7_560 * S, "2.1 h"),
        (-3 * S, "-3 s"),
    ],
)
def test_durations_are_written_as_people_say_them(ns: int, said: str) -> None:
    assert say_ns(ns) == said


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
