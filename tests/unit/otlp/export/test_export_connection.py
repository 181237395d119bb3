from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from rollscope.otlp.export.connection import HttpAnswer, KeptConnection
from rollscope.otlp.export.sending import Again
from tests.otlp_sink import Reply, http_sink


def away_s(text: str | None) -> float | None:
    return HttpAnswer(503, "Unavailable", b"", text).retry_after_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("-3", 0.0),
        ("1e12", 3600.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Wed, 01 Jan 2020 12:00:00 GMT", 0.0),
    ],
)
def test_how_long_to_stay_away_is_a_sound_number_or_nothing(
    text: str | None, seconds: float | None
) -> None:
    assert away_s(text) == seconds


def test_a_date_says_how_long_to_stay_away_too() -> None:
    seconds = away_s(formatdate(time.time() + 1_000, usegmt=True))
    assert seconds is not None
    assert 900 < seconds <= 1_000


def test_a_connection_is_kept_and_made_anew_when_the_other_side_let_go() -> None:
    with http_sink() as sink:
        sink.replies = [Reply(204, {}), Reply(204, {"Connection": "close"}), Reply(204, {})]
        connection = KeptConnection(f"{sink.address}/v1/metrics?x=1", 10.0)
        for _ in range(3):
            assert connection.post(b"body", {}).is_taken
        connection.close()
        assert len(sink.connections) == 2


def test_nobody_there_is_said_without_the_password() -> None:
    connection = KeptConnection("http://me:secret@127.0.0.1:1/x", 10.0)
    with pytest.raises(Again, match=r"^127\.0\.0\.1:1 cannot be reached"):
        connection.post(b"", {})
