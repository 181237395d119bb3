from __future__ import annotations

import pytest

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.targets import MOST_TARGETS, make_target
from rollscope.collect.watchlist import Source, TargetFixed, WatchList, key_of


def empty() -> WatchList:
    return WatchList(SeriesChoice(()), 2.0)


def sources(watched: WatchList) -> dict[str, str]:
    return {one.watch.target.address.instance: one.source.value for one in watched}


def test_adding_a_target_again_keeps_what_is_known_of_it() -> None:
    watched = empty()
    watched.put(make_target("h:1"), Source.REQUEST)
    (before,) = watched
    watched.put(make_target("h:1"), Source.REQUEST)
    (same,) = watched
    watched.put(make_target("h:1", replica="r1"), Source.REQUEST)
    (changed,) = watched

    assert same.watch is before.watch
    assert changed.watch is not before.watch
    assert [one.replica for one in watched.requested()] == ["r1"]


@pytest.mark.parametrize("source", [Source.OPTION, Source.FILE])
def test_requests_do_not_change_what_the_server_was_started_with(source: Source) -> None:
    watched = empty()
    watched.put(make_target("h:1", replica="r0"), source)
    watched.put(make_target("h:1", replica="r0"), Source.REQUEST)  # says the same

    with pytest.raises(TargetFixed, match="h:1/metrics stands in the"):
        watched.put(make_target("h:1"), Source.REQUEST)
    with pytest.raises(TargetFixed, match="h:1"):
        watched.drop(key_of(make_target("h:1")))
    assert sources(watched) == {"h:1": source.value}
    assert watched.requested() == []


def test_a_file_takes_back_only_what_it_has_listed() -> None:
    watched = empty()
    watched.put(make_target("h:1"), Source.OPTION)
    watched.put(make_target("h:2"), Source.REQUEST)
    watched.put_listed([make_target("h:3"), make_target("h:4")])
    watched.put_listed([make_target("h:4")])

    assert sources(watched) == {"h:1": "option", "h:2": "request", "h:4": "file"}


def test_a_target_that_is_not_there_cannot_be_dropped() -> None:
    assert not empty().drop((None, "http://h:1/metrics"))


def test_there_is_a_bound() -> None:
    watched = empty()
    for port in range(MOST_TARGETS):
        watched.put(make_target(f"h:{port + 1}"), Source.REQUEST)

    with pytest.raises(ValueError, match="1000 targets"):
        watched.put(make_target("one:1"), Source.REQUEST)
    assert len(watched) == MOST_TARGETS
