from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.otlp.answering import Form, Signal, answer
from rollscope.otlp.export.replies import read_delivered, read_retry_info, read_words
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed, Sending, Stopped
from rollscope.otlp.forms import Request

if TYPE_CHECKING:
    from collections.abc import Callable


class Scripted:
    """A target that does as it is told."""

    def __init__(self, *script: Exception | Delivered) -> None:
        self.script = list(script)
        self.sent: list[bytes] = []

    def send(self, signal: Signal, body: bytes) -> Delivered:
        del signal
        self.sent.append(body)
        said = self.script.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    def close(self) -> None:
        """Hold nothing."""


def noting(waits: list[float]) -> Callable[[float], None]:
    return waits.append


def test_what_may_be_tried_again_is_later_and_later() -> None:
    waits: list[float] = []
    told: list[str] = []
    target = Scripted(Again("away"), Again("away"), Again("away"), Delivered(0))
    sending = Sending(target, 60.0, sleep=noting(waits), tell=told.append)
    assert sending.deliver(Signal.TRACES, b"x") == Delivered()
    assert target.sent == [b"x"] * 4
    assert waits[0] < waits[1] < waits[2]
    assert told == ["away; trying again"]


def test_an_endpoint_is_left_alone_for_as_long_as_it_asks() -> None:
    waits: list[float] = []
    target = Scripted(Again("full", 7.5), Delivered(0))
    Sending(target, 60.0, sleep=noting(waits)).deliver(Signal.TRACES, b"x")
    assert waits == [7.5]


def test_patience_ends_with_a_sentence_about_the_cause() -> None:
    target = Scripted(Again("c:4318 cannot be reached", 100.0))
    with pytest.raises(ExportFailed, match=r"c:4318 cannot be reached; it was tried for 60 s"):
        Sending(target, 60.0, sleep=noting([])).deliver(Signal.TRACES, b"x")


def test_waiting_can_be_ended() -> None:
    target = Scripted(Again("away"))
    with pytest.raises(Stopped):
        Sending(target, None, sleep=lambda _: True).deliver(Signal.TRACES, b"x")


@pytest.mark.parametrize("form", list(Form))
def test_a_partial_success_is_read_back(form: Form) -> None:
    request = Request()
    assert read_delivered(form, answer(Signal.TRACES, form, request)) == Delivered()
    request.reject("is too old", 300)
    said = read_delivered(form, answer(Signal.TRACES, form, request))
    assert said.rejected == 300
    assert "is too old" in said.message


@pytest.mark.parametrize("data", [b"<html>", b"\xff\xff\xff", b"{", b'{"partialSuccess": 3}'])
@pytest.mark.parametrize("form", list(Form))
def test_an_answer_of_no_known_form_says_nothing(form: Form, data: bytes) -> None:
    assert read_delivered(form, data) == Delivered()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"code": 3, "message": "no such tenant"}', " (no such tenant)"),
        (b"\x08\x03\x12\x0eno such tenant", " (no such tenant)"),
        (b"<html>no\n such</html>", " (<html>no such</html>)"),
        (b"", ""),
    ],
)
def test_a_refusal_is_told_in_its_own_words(data: bytes, words: str) -> None:
    assert read_words(data) == words


def test_the_time_to_stay_away_is_found_in_the_details_of_a_status() -> None:
    delay = b"\x08\x02\x10\x80\xca\xb5\xee\x01"  # 2 s and half a billion ns
    info = b"\x0a" + bytes([len(delay)]) + delay
    kind = b"type.googleapis.com/google.rpc.RetryInfo"
    detail = b"\x0a" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(info)]) + info
    status = b"\x08\x08\x1a" + bytes([len(detail)]) + detail
    assert read_retry_info(status) == 2.5
    assert read_retry_info(b"\x08\x08") is None
    assert read_retry_info(b"\x1a\xff") is None
