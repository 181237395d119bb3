"""How the head moves the times of an actor to its own clock."""

from __future__ import annotations

from unittest.mock import MagicMock

from rollscope.runner.ray.actor import Hello
from rollscope.runner.ray.member import Member

MS = 1_000_000
YEAR_NS = 365 * 86_400 * 1_000_000_000


def make_member() -> Member:
    return Member("actor-0", MagicMock(), Hello(1, "host"), 4)


def here_ns(member: Member, there_ns: int) -> int:
    return member.here_ns(there_ns, 0, YEAR_NS)


def test_times_of_the_same_host_stay_as_they_are_however_uneven_the_round_trip() -> None:
    member = make_member()
    member.learn_clock(100 * MS, 119 * MS, 120 * MS)
    assert here_ns(member, 150 * MS) == 150 * MS


def test_another_hosts_clock_is_taken_to_be_read_in_the_middle_of_the_quickest_round_trip() -> None:
    member = make_member()
    member.learn_clock(100 * MS, 5_000 * MS, 120 * MS)
    assert here_ns(member, 5_000 * MS) == 110 * MS
    member.learn_clock(200 * MS, 5_091 * MS, 202 * MS)
    assert here_ns(member, 5_091 * MS) == 201 * MS
    member.learn_clock(300 * MS, 5_290 * MS, 400 * MS)  # slower, so it tells less
    assert here_ns(member, 5_091 * MS) == 201 * MS


def test_no_time_is_moved_out_of_what_is_known_for_certain() -> None:
    member = make_member()
    member.learn_clock(100 * MS, 5_000 * MS, 120 * MS)
    assert member.here_ns(5_000 * MS, 112 * MS, 115 * MS) == 112 * MS
    assert member.here_ns(5_020 * MS, 112 * MS, 115 * MS) == 115 * MS
