"""What went wrong, as an answer: a status, one sentence, and what to do."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rollscope.errors import (
    CollectorAway,
    CollectorBusy,
    CommandError,
    FilterError,
    FramesRefused,
    IngestError,
    NoRoom,
    NotARunError,
    RollscopeError,
    StoreError,
    WrongRun,
)

__all__ = ["Failure", "answer_failure", "failure_response"]

_WRONG_USAGE: Final = 2
"""The exit code of a command whose arguments make no sense."""

_INGEST: Final[dict[type[IngestError], tuple[int, str]]] = {
    FramesRefused: (400, "Do not send it again: it stays as it is."),
    WrongRun: (409, "Send to the server that shows that run."),
    CollectorBusy: (429, "Send it again after a moment."),
    CollectorAway: (503, "Send it again after a moment."),
    NoRoom: (507, "Make room, then send it again."),
}


class Failure(RollscopeError):
    """A request that is answered with a status of its own."""

    def __init__(
        self,
        status: int,
        error: str,
        advice: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        position: int | None = None,
    ) -> None:
        """Keep what is to be said.

        Args:
            status: Of HTTP.
            error: What went wrong.
            advice: What to do about it.
            headers: To be sent along.
            position: The character of a filter, from 0, that it is about.
        """
        super().__init__(error)
        self.status = status
        self.error = error
        self.advice = advice
        self.headers = dict(headers or {})
        self.position = position


def failure_response(failure: Failure) -> Response:
    """Put a failure into JSON."""
    said: dict[str, str | int] = {"error": failure.error, "advice": failure.advice}
    if failure.position is not None:
        said["position"] = failure.position
    return Response(
        msgspec.json.encode(said),
        status_code=failure.status,
        headers={"Cache-Control": "no-store", **failure.headers},
        media_type="application/json",
    )


async def answer_failure(request: Request, error: Exception) -> Response:
    """Answer a request that failed; what nobody foresaw is told without its details."""
    return failure_response(_failure_of(error))


def _failure_of(error: Exception) -> Failure:
    match error:
        case Failure():
            return error
        case IngestError():
            return _of_ingest(error)
        case FilterError():
            return Failure(400, str(error), "Correct the filter.", position=error.position)
        case CommandError(exit_code=code) if code == _WRONG_USAGE:
            return Failure(400, str(error), "Correct the parameters.")
        case CommandError():
            return Failure(404, str(error), "Ask for something the run has.")
        case NotARunError():
            return Failure(404, str(error), "Choose another run.")
        case StoreError():
            return Failure(500, str(error), "`rollscope doctor` says what is wrong with the files.")
        case RollscopeError():
            return Failure(500, str(error))
        case HTTPException():
            return _of_status(error)
        case _:
            kind = type(error).__name__
            return Failure(
                500,
                f"The server failed with {kind}; what led to it stands in its terminal.",
                "Try again; if it stays, report it with those lines.",
            )


def _of_ingest(error: IngestError) -> Failure:
    status, advice = _INGEST.get(type(error), (500, ""))
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return Failure(status, _sentence(str(error)), advice, headers=headers)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _of_status(error: HTTPException) -> Failure:
    if error.status_code == 404:
        return Failure(404, "There is nothing at this address.", "The API lies under api/v1/.")
    phrase = HTTPStatus(error.status_code).phrase
    return Failure(error.status_code, error.detail or phrase, headers=error.headers)
