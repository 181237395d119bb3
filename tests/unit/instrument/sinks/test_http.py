from __future__ import annotations

import pytest

from rollscope.instrument.sinks import http
from rollscope.instrument.sinks.collector import Busy, Delivery, Refused, TooLarge
from rollscope.instrument.sinks.http import HttpSink
from rollscope.model.batch import encode_batch
from rollscope.model.frames import pack_frame
from tests.builders import make_batch
from tests.collecting_server import TOKEN, CollectingServer

DELIVERY = Delivery("run", {}, b"\0\0\0\0\0\0\0\1", pack_frame(encode_batch(make_batch(0))))


def test_frames_to_another_machine_are_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "is_same_machine", lambda connection: False)
    with CollectingServer() as server:
        sink = HttpSink(server.address, token=TOKEN)
        sink.connect()
        sink.deliver(DELIVERY)
        sink.disconnect()
    (taken,) = server.taken
    assert taken.headers["Content-Encoding"] == "deflate"
    assert len(taken.batches) == 1


@pytest.mark.parametrize(
    ("status", "retry_after", "error", "wait_s"),
    [
        (400, None, Refused, None),
        (401, None, Busy, 30.0),
        (404, None, Busy, 30.0),
        (409, None, Busy, 30.0),
        (413, None, TooLarge, None),
        (415, None, Busy, 30.0),
        (429, "2", Busy, 2.0),
        (429, None, Busy, 1.0),
        (429, "nan", Busy, 1.0),
        (429, "99999", Busy, 60.0),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", Busy, 1.0),
        (507, "0", Busy, 0.1),
        (500, None, ConnectionError, None),
    ],
)
def test_each_answer_means_something(
    status: int, retry_after: str | None, error: type[Exception], wait_s: float | None
) -> None:
    headers = {} if retry_after is None else {"Retry_After": retry_after}
    with CollectingServer() as server:
        server.answer = lambda handler, body: handler.respond(status, {"error": "x"}, **headers)
        sink = HttpSink(server.address, token=TOKEN)
        sink.connect()
        with pytest.raises(error) as raised:
            sink.deliver(DELIVERY)
        sink.disconnect()
    if isinstance(raised.value, Busy):
        assert raised.value.retry_after_s == wait_s
        assert raised.value.why
        assert raised.value.may_pass == (status >= 429)


def test_a_connection_that_the_server_closed_meanwhile_is_made_again() -> None:
    with CollectingServer() as server:
        sink = HttpSink(server.address, token=TOKEN)
        sink.connect()
        sink.deliver(DELIVERY)
        server.stop()
        server.start()
        sink.deliver(DELIVERY)
        sink.disconnect()
    assert len(server.connections) == 2
