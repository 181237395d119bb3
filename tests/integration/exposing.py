"""Programs that expose metrics, in the words of the real engines, for tests to ask."""

from __future__ import annotations

import http.server
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Exposer", "exposing", "ray_text", "sglang_text", "vllm_text"]

Handler = http.server.BaseHTTPRequestHandler


def vllm_text(tokens: int = 1_000, *, kv: float = 0.25, waiting: int = 3, seen: int = 4) -> str:
    """Give what vLLM exposes, cut to the parts that matter and a few that do not."""
    labels = 'engine="0",model_name="Qwen/Qwen3-8B"'
    return f"""\
# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{{generation="0"}} 12109.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{{labels}}} 17.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{{labels}}} {waiting}.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{{labels}}} {kv}
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{{{labels}}} {tokens // 500}.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{{{labels}}} 1.7631e+09
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{{labels}}} {tokens}.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{{labels}}} {tokens * 0.75}
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{{labels}}} {tokens}.0
# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{le="0.1",{labels}}} {seen}.0
vllm:time_to_first_token_seconds_bucket{{le="0.5",{labels}}} {seen * 2}.0
vllm:time_to_first_token_seconds_bucket{{le="+Inf",{labels}}} {seen * 2}.0
vllm:time_to_first_token_seconds_count{{{labels}}} {seen * 2}.0
vllm:time_to_first_token_seconds_sum{{{labels}}} {seen * 0.4}
"""


def sglang_text() -> str:
    """Give what SGLang exposes."""
    labels = '{engine_type="unified",model_name="Qwen/Qwen3-8B",pp_rank="0",tp_rank="0"}'
    return f"""\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{labels} 21.0
# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{labels} 5.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage{labels} 0.5
# TYPE sglang:num_retracted_reqs gauge
sglang:num_retracted_reqs{labels} 2.0
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{labels} 0.125
# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{labels} 1800.0
"""


def ray_text() -> str:
    """Give what a Ray node exposes for two replicas that run vLLM."""
    return "# TYPE ray_vllm_kv_cache_usage_perc gauge\n" + "".join(
        f'ray_vllm_kv_cache_usage_perc{{ReplicaId="{name}",WorkerId="w",model_name="m"}} {use}\n'
        for name, use in (("replica-a", 0.5), ("replica-b", 0.75))
    )


class Exposer:
    """A program that exposes metrics at an address."""

    def __init__(self) -> None:
        self.text = vllm_text()
        self.answer: Callable[[Handler], None] | None = None
        """Answers instead, if somebody wants it to misbehave."""
        self.asked = 0
        self.peers: set[tuple[str, int]] = set()
        self.address = ""
        self.connections: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """Say where it is."""
        return f"http://{self.address}/metrics"

    def handle(self, handler: Handler) -> None:
        """Answer one request."""
        self.asked += 1
        self.peers.add(handler.client_address)
        if self.answer is not None:
            self.answer(handler)
            return
        body = self.text.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def exposing(port: int = 0) -> Iterator[Exposer]:
    """Expose metrics at a port while the block runs."""
    exposer = Exposer()

    class _Handler(Handler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            exposer.connections.add(self.connection)

        def finish(self) -> None:
            with suppress(OSError):  # who asked has hung up
                super().finish()
            exposer.connections.discard(self.connection)

        def do_GET(self) -> None:
            exposer.handle(self)

        def log_message(self, *_: object) -> None:
            pass

    class _Server(http.server.ThreadingHTTPServer):
        daemon_threads = False  # they are waited for

        def handle_error(self, *_: object) -> None:
            pass  # who asked has hung up

    with _Server(("127.0.0.1", port), _Handler) as server:
        exposer.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield exposer
        finally:
            server.shutdown()
            thread.join()
            for connection in list(exposer.connections):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
