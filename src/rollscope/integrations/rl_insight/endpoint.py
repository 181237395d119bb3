"""The endpoint that Prometheus asks: this process's metrics, as RL-Insight's hub names them.

It begins with the first metric, so a worker that only traces opens no port. A thread of its own
binds, adds calls up and answers; a caller appends to a list and goes on.
"""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Final

from rollscope.instrument.buffers import take_all
from rollscope.instrument.guard import guarded, tell, tell_once
from rollscope.integrations.rl_insight.exposed import Call, Registry
from rollscope.metrics.exposition import TextFormat, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.integrations.rl_insight.configuring import MonitorConfig

__all__ = ["Endpoint"]

_MOST_WAITING: Final = 300_000
_FOLD_EVERY_S: Final = 0.25
_PATIENCE_S: Final = 5.0
_PATHS: Final = ("/", "/metrics")
_log = logging.getLogger("rollscope")


class Endpoint:
    """Shows the metrics of one process."""

    def __init__(
        self, config: MonitorConfig, when_up: Callable[[str, int], None] | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            config: Where to listen, and what names begin with.
            when_up: Told the host and the port, in the endpoint's own thread.
        """
        self._config = config
        self._when_up = when_up
        self._registry = Registry(config.namespace, config.buckets)
        self._waiting: list[Call] = []
        self._lost = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server: HTTPServer | None = None
        self._is_up = threading.Event()

    def add(self, call: Call) -> None:
        """Take a call; its caller waits for nothing."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(call)
        else:
            self._lost += 1
        if self._thread is None:
            self._start()

    def address(self, timeout_s: float = _PATIENCE_S) -> tuple[str, int] | None:
        """Say where it listens; None if no metric has come yet, or no port was to be had."""
        if self._thread is None:
            return None
        self._is_up.wait(timeout_s)
        server = self._server
        return None if server is None else (self._config.report_host, server.server_address[1])

    def close(self) -> None:
        """Stop, and give the port back."""
        thread, server = self._thread, self._server
        if thread is None:
            return
        self._is_up.wait(_PATIENCE_S)
        server = self._server
        if server is not None:
            server.shutdown()
        thread.join(_PATIENCE_S)

    def in_child(self) -> Endpoint:
        """Give the endpoint of a forked child, which has counted nothing yet."""
        if self._server is not None:
            self._server.socket.close()  # the parent's copy stays open
        return Endpoint(self._config, self._when_up)

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(
                target=self._serve, name="rollscope-rl-insight", daemon=True
            )
            self._thread.start()

    def _serve(self) -> None:
        server = None
        try:
            with guarded("the metrics endpoint"):
                server = self._server = self._bind()
        finally:
            self._is_up.set()
        if server is None:
            return
        with server:
            if self._when_up is not None:
                with guarded("registering the metrics endpoint"):
                    self._when_up(self._config.report_host, server.server_address[1])
            server.serve_forever(_FOLD_EVERY_S)

    def _bind(self) -> HTTPServer | None:
        host, wanted = self._config.report_host, self._config.report_port or 0
        endpoint = self

        class Server(HTTPServer):
            def service_actions(self) -> None:
                endpoint.fold()

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # whoever hangs up is no news for the trainer's log

        class Handler(_Handler):
            text = self._text

        for port in dict.fromkeys((wanted, 0)):
            try:
                server = Server((host, port), Handler)
            except OSError as error:
                why = error.strerror or error
                continue
            found = server.server_address[1]
            if port != wanted:
                tell("Metrics are at http://%s:%d/metrics, as port %d is not free: %s",
                     host, found, wanted, why)  # fmt: skip
            else:
                _log.info("Metrics are at http://%s:%d/metrics", host, found)
            return server
        tell("Metrics are not shown: nothing can listen on %s: %s", host, why)
        return None

    def fold(self) -> None:
        """Add up what waits; for the endpoint's own thread."""
        with guarded("adding metrics up"):
            self._registry.take(take_all(self._waiting))
            if self._lost:
                self._registry.refused["overload"] += self._lost
                self._lost = 0
        if self._registry.refused:
            tell_once(
                "rl-insight:refused",
                "Some calls of metrics are not shown at the endpoint; "
                "refused_calls_total there says how many, and why",
            )

    def _text(self) -> bytes:
        self.fold()
        return write_text(self._registry.expose(), TextFormat.PROMETHEUS)


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    text: Callable[[], bytes]

    def do_GET(self) -> None:
        """Answer Prometheus."""
        is_known = self.path.partition("?")[0] in _PATHS
        body = type(self).text() if is_known else b"Metrics are at /metrics.\n"
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Type", TextFormat.PROMETHEUS.value if is_known else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
