from __future__ import annotations

from typing import Any

import pytest

from rollscope.otlp.forms import Sender
from rollscope.otlp.naming import SILENCE_S, process_header, sender_key
from rollscope.store.liveness import is_alive
from tests.unit.otlp.desk import NOW_NS, Desk, span


def test_a_sender_is_a_process_with_the_role_of_its_service() -> None:
    attrs = {"service.name": "vllm", "host.name": "gpu-1", "process.pid": 7, "rank": "3"}
    header = process_header(Sender(attrs), NOW_NS)
    assert (header.role, header.host, header.pid, header.rank) == ("vllm", "gpu-1", 7, 3)


@pytest.mark.parametrize("pid", [-1, 2**40, "x", None, 1.5, True, [1]])
def test_a_pid_that_is_none_is_zero(pid: Any) -> None:
    assert process_header(Sender({"process.pid": pid}), NOW_NS).pid == 0


def test_open_spans_are_lost_after_ten_minutes_of_silence() -> None:
    header = process_header(Sender({"service.name": "x"}), NOW_NS)
    assert SILENCE_S == 600
    assert is_alive(header, NOW_NS, NOW_NS + 599 * 10**9)
    assert not is_alive(header, NOW_NS, NOW_NS + 601 * 10**9)


def test_senders_differ_by_instance_host_and_pid() -> None:
    keys = {
        sender_key(Sender({"service.name": "x", **more}))
        for more in ({}, {"service.instance.id": "1"}, {"host.name": "h"}, {"process.pid": 1})
    }
    assert len(keys) == 4
    assert sender_key(Sender({"service.name": "x", "other": 1})) in keys


def test_senders_beyond_a_thousand_share_a_log() -> None:
    desk = Desk()
    for number in range(1_010):
        desk.take(span("x", number + 1, 5000), service_name="many", service_instance_id=number)
    many = {key: log for (run, key), log in desk.logs.items() if run == "many"}
    assert len(desk.logs) == len(many) == 1_001
    assert len([one for one in desk.spans() if one.name == "x"]) == 1_010
