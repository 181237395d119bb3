from __future__ import annotations

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.expiry import Expiry
from rollscope.collect.targets import make_target
from rollscope.collect.watching import Watch

HOUR = 3_600.0


class Clock:
    """Says what it is told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def watch(run: str | None = None) -> Watch:
    return Watch(make_target("h:8000", run=run), SeriesChoice(()), 2.0)


def look(
    expiry: Expiry, one: Watch, chosen: str | None = None, active: tuple[str, ...] = ()
) -> list[str]:
    return [why for _, why in expiry.look([one], chosen, active)]


def test_a_target_goes_an_hour_after_its_run() -> None:
    clock = Clock()
    expiry, one = Expiry(clock), watch("live")
    assert look(expiry, one, active=("live",)) == []
    assert expiry.remaining_s(one.target) is None
    clock.now_s = 5.0
    assert look(expiry, one) == []
    clock.now_s += HOUR - 1
    assert look(expiry, one) == []
    assert expiry.remaining_s(one.target) == 1.0
    clock.now_s += 1

    assert look(expiry, one) == ["nothing was recorded into its run 'live' for an hour"]
    assert [gone.url for gone in expiry.gone] == ["http://h:8000/metrics"]


def test_a_run_that_goes_on_gives_its_targets_another_hour() -> None:
    clock = Clock()
    expiry, one = Expiry(clock), watch("live")
    look(expiry, one)
    clock.now_s = HOUR - 1
    look(expiry, one, active=("live",))
    clock.now_s = HOUR + 10

    assert look(expiry, one) == []


def test_a_target_goes_after_an_hour_of_being_down() -> None:
    clock = Clock()
    expiry, one = Expiry(clock), watch()
    one.is_up = False
    look(expiry, one, "live", ("live",))
    clock.now_s = HOUR

    assert look(expiry, one, "live", ("live",)) == ["it was down for an hour"]


def test_nobody_counts_as_down_while_nobody_is_asked() -> None:
    clock = Clock()
    expiry, one = Expiry(clock), watch()
    one.is_up = False
    look(expiry, one, "live", ())
    clock.now_s = 10 * HOUR

    assert look(expiry, one, "live", ()) == []


def test_the_list_of_those_that_went_is_bounded() -> None:
    expiry = Expiry(after_s=0.0)
    for _ in range(200):
        look(expiry, watch("over"))

    assert len(expiry.gone) == 50
