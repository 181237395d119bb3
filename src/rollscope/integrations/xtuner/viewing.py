"""The live page beside a training program, at an address that is known at once."""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

from rollscope.instrument.viewer import start_viewer as start_process

if TYPE_CHECKING:
    from rollscope.integrations.xtuner.traceruntime import TraceRuntime

__all__ = ["start_viewer"]


def start_viewer(runtime: TraceRuntime) -> None:
    """Start the viewer and say where it is; a port that is taken is exchanged for another."""
    host = runtime.options.viewer_host
    port = _free_port(host, runtime.options.viewer_port)
    run_dir = runtime.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    token_file = run_dir / "viewer-token"
    token = secrets.token_urlsafe(24)
    token_file.unlink(missing_ok=True)
    with os.fdopen(os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{token}\n")
    tracer = runtime.tracer
    where = ["--host", host, "--port", str(port), "--token-file", str(token_file)]
    viewer = start_process(tracer.settings, tracer.run, where)
    if viewer is None:
        return
    tracer._viewer = viewer  # which then ends with the run
    shown = f"[{host}]" if ":" in host else host
    runtime.trace_viewer_port = port
    runtime.trace_viewer_url = f"http://{shown}:{port}/?token={token}"
    print(f"Producer Trace Viewer: http://{shown}:{port}", flush=True)  # noqa: T201  (as of old)


def _free_port(host: str, wanted: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in (wanted, 0):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    return 0
