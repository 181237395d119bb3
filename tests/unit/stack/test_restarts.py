from __future__ import annotations

from rollscope.stack.restarts import RestartPolicy, Restarts


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_member_is_restarted_later_and_later_and_then_left_alone() -> None:
    restarts = Restarts(RestartPolicy(), Clock())
    delays = [restarts.next_delay_s() for _ in range(7)]
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, None, None]


def test_a_restart_is_due_after_its_delay_and_not_before() -> None:
    clock = Clock()
    restarts = Restarts(RestartPolicy(), clock)
    assert restarts.next_delay_s() == 1.0
    clock.now += 0.9
    assert not restarts.is_due()
    clock.now += 0.1
    assert restarts.is_due()


def test_restarts_of_long_ago_do_not_count() -> None:
    clock = Clock()
    restarts = Restarts(RestartPolicy(most=2, within_s=600), clock)
    assert [restarts.next_delay_s() for _ in range(3)] == [1.0, 2.0, None]
    clock.now += 601
    assert restarts.next_delay_s() == 1.0
