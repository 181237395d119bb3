from __future__ import annotations

import asyncio
import json
from unittest.mock import Mock

import pytest

from rollscope import errors
from rollscope.errors import IngestError
from rollscope.server.failures import answer_failure


@pytest.mark.parametrize(
    ("error", "status", "again"),
    [
        (errors.FramesRefused, 400, None),
        (errors.WrongRun, 409, "30"),
        (errors.CollectorBusy, 429, "1"),
        (errors.CollectorAway, 503, "1"),
        (errors.NoRoom, 507, "5"),
    ],
)
def test_a_sender_is_told_in_a_sentence_whether_and_when_to_come_again(
    error: type[IngestError], status: int, again: str | None
) -> None:
    answer = asyncio.run(answer_failure(Mock(), error("there is a reason")))
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, again)
    said = json.loads(bytes(answer.body))
    assert said["error"] == "There is a reason."
    assert said["advice"]


def test_every_ingest_error_has_a_status() -> None:
    for kind in IngestError.__subclasses__():
        assert asyncio.run(answer_failure(Mock(), kind("why"))).status_code != 500
