from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from rollscope.errors import CommandError
from rollscope.stack.ports import PortTable, holder_of, is_free

HOST = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which this process listens, with a free one after it."""
    while True:
        with socket.create_server((HOST, 0)) as server:
            port: int = server.getsockname()[1]
            if port < 65_000 and is_free(HOST, port + 1):
                yield port
                return


def test_a_port_that_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(HOST, taken)
    assert is_free(HOST, taken + 1)


def test_the_next_free_port_is_taken_in_place_of_the_usual_one_and_said(taken: int) -> None:
    table = PortTable()
    assert table.take("Prometheus", None, taken, HOST, "--prometheus-port") == taken + 1
    (note,) = table.notes
    assert note.startswith(f"Port {taken} is taken by ")
    assert note.endswith(f"(pid {os.getpid()}); Prometheus listens on {taken + 1}.")


def test_a_port_that_was_asked_for_is_refused_if_taken_and_its_holder_named(taken: int) -> None:
    with pytest.raises(CommandError) as caught:
        PortTable().take("Prometheus", taken, 9090, HOST, "--prometheus-port")
    assert str(caught.value).startswith(f"--prometheus-port {taken}: Prometheus cannot listen")
    assert f"(pid {os.getpid()})" in str(caught.value)
    assert caught.value.exit_code == 2


def test_no_port_is_given_out_twice(taken: int) -> None:
    table = PortTable()
    first = table.take("a", None, taken + 1, HOST, "--a-port")
    second = table.take("b", None, first, HOST, "--b-port")
    assert second > first
    with pytest.raises(CommandError, match="another member of the stack has that port"):
        table.take("c", first, 1, HOST, "--c-port")


def test_nobody_is_named_for_a_port_that_nobody_holds(taken: int) -> None:
    assert holder_of(taken + 1) is None


def test_an_address_that_is_none_of_this_machine_is_an_error() -> None:
    with pytest.raises(CommandError, match="cannot listen on 'no such host'"):
        is_free("no such host", 80)
