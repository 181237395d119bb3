"""A rollout that crosses every border there is, each part in a process of its own.

    python -m tests.integration.one_tree driver COLLECTOR

The driver calls an actor of Ray, the actor starts a tool, the tool asks an engine over HTTP. The
first three record through Ray's hub. The engine knows nothing of Rollscope: it sends what
OpenTelemetry's SDK makes of the headers that the tool sent. Settings come from the environment.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import rollscope as rs

_TIMEOUT_S = 60


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tests.integration.one_tree", *words]


class Solver:
    """The actor."""

    def solve(self, engine: str) -> str:
        """Have a tool do the work."""
        with rs.phase("toolcall", tool="python"):
            done = subprocess.run(
                _command("tool", engine),
                env=rs.child_env(),
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
        return done.stdout.decode()

    def leave(self) -> bool:
        """Say that everything is delivered."""
        return rs.shutdown()


def tool(engine: str) -> None:
    """Ask an engine, and print what it says."""
    rs.init(role="tool")
    with rs.span("tool.ask", category="comm"):
        request = urllib.request.Request(engine, b"{}", rs.inject())  # noqa: S310  (on loopback)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            sys.stdout.write(answer.read().decode())
    rs.shutdown()


def engine(collector: str) -> None:
    """Serve requests until the input ends; print where."""
    provider = TracerProvider(resource=Resource({"service.name": "engine"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{collector}/v1/traces")))
    tracer = provider.get_tracer("engine")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            attributes: dict[str, str | int] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.output_tokens": 41,
            }
            context = extract({name.lower(): value for name, value in self.headers.items()})
            with tracer.start_as_current_span("llm_request", context, attributes=attributes):
                body = b"an answer"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.handle_request()
    provider.shutdown()


def _wait_for_the_hub() -> None:
    """Wait until the hub has fetched what the tool, which Ray does not know of, left for it."""
    spools = Path(os.environ["ROLLSCOPE_SPOOL_DIR"])
    ends_at = time.monotonic() + _TIMEOUT_S
    while len(list(spools.iterdir())) > 1:  # there is our own too
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def driver(collector: str) -> None:
    """Run the rollout, and print what came back."""
    import ray

    from rollscope.rayhub import follow

    with subprocess.Popen(_command("engine", collector), stdout=subprocess.PIPE) as serving:
        assert serving.stdout is not None
        address = serving.stdout.readline().decode().strip()
        ray.init(
            num_cpus=1,
            include_dashboard=False,
            object_store_memory=100_000_000,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        rs.init(role="driver")
        solver: Any = follow(ray.remote(num_cpus=1)(Solver)).remote()
        with rs.step(3), rs.task("gsm8k/12"), rs.session(sample=2) as session:
            with rs.phase("rollout"):
                answer = ray.get(solver.solve.remote(address), timeout=_TIMEOUT_S)
            session.finish("accepted", reward=1.0)
        assert ray.get(solver.leave.remote(), timeout=_TIMEOUT_S)
        _wait_for_the_hub()
        rs.shutdown()
        ray.shutdown()
    sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    {"driver": driver, "engine": engine, "tool": tool}[sys.argv[1]](sys.argv[2])
