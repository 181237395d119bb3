"""The receiver of OTLP: from the bytes of a request to logs, and to the answer.

It belongs to the collecting thread: one request is taken after the other.
"""

import time
from collections.abc import Callable
from typing import Final

from rollscope.instrument.guard import tell_once
from rollscope.otlp import jsonform, jsonmetrics, protobuf, protometrics
from rollscope.otlp.answering import Form, Signal, answer
from rollscope.otlp.forms import Request
from rollscope.otlp.logs import take_logs
from rollscope.otlp.naming import sender_key
from rollscope.otlp.placing import Placer
from rollscope.otlp.points import Points
from rollscope.otlp.traces import Tracing
from rollscope.otlp.writing import Authors, Books

__all__ = ["Receiver"]

_READERS: Final[dict[tuple[Signal, Form], Callable[[bytes], Request]]] = {
    (Signal.TRACES, Form.PROTOBUF): protobuf.read_traces,
    (Signal.METRICS, Form.PROTOBUF): protometrics.read_metrics,
    (Signal.LOGS, Form.PROTOBUF): protobuf.read_logs,
    (Signal.TRACES, Form.JSON): jsonform.read_traces,
    (Signal.METRICS, Form.JSON): jsonmetrics.read_metrics,
    (Signal.LOGS, Form.JSON): jsonform.read_logs,
}
_ELSEWHERE: Final = "belongs to another run than the one that this server keeps"


class Receiver:
    """Takes requests; for one thread at a time."""

    def __init__(
        self,
        authors: Authors,
        *,
        only_run: str | None = None,
        keeps_content: bool = False,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take nothing yet.

        Args:
            authors: Gives the logs that are written.
            only_run: The only run that is kept; what names no run belongs to it.
            keeps_content: Keep what was said to and by models, as payloads.
            now_ns: The wall clock.
        """
        self._now_ns = now_ns
        self._placer = Placer(only_run)
        self._books = Books(authors)
        self._tracing = Tracing(self._placer, self._books, keeps_content=keeps_content)
        self._points = Points(self._placer, self._books, now_ns())

    @property
    def doubled(self) -> int:
        """How many spans came more than once."""
        return self._tracing.doubled

    def take(self, signal: Signal, form: Form, body: bytes) -> bytes:
        """Take a request.

        Returns:
            The body of the answer.

        Raises:
            OtlpError: It cannot be read.
            IngestError: It cannot be kept now.
        """
        request = _READERS[signal, form](body)
        now_ns = self._now_ns()
        if request.lenient:
            _tell_lenient(request)
        if signal is Signal.LOGS:
            take_logs(request, self._placer, self._books, now_ns)
        if signal is Signal.METRICS:
            self._points.take(request, now_ns)
        else:
            self._tracing.take(request, now_ns)
        refused = self._books.write(now_ns)
        if refused:
            request.reject(_ELSEWHERE, refused)
        return answer(signal, form, request)


def _tell_lenient(request: Request) -> None:
    sender = request.spans[0].sender if request.spans else None
    name = sender_key(sender).partition("|")[0] if sender else "?"
    for liberty in sorted(request.lenient):
        tell_once(
            f"otlp:{name}:{liberty}"[:200],
            "Rollscope reads what %.100r sends over OTLP, though it has %s",
            name,
            liberty,
        )
