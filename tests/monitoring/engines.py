"""Two programs in one that expose what vLLM and SGLang do, all that the dashboards ask for.

Run as `python -m tests.monitoring.engines`; prints the addresses. Counters grow with each question.
It goes on until its standard input ends.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.integration.exposing import exposing, sglang_text, vllm_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.exposing import Exposer, Handler

_SHARED = ("inter_token_latency_seconds", "e2e_request_latency_seconds")


def growing_vllm(asked: int) -> str:
    """Give what vLLM exposes when it is asked for the n-th time."""
    names = (*_SHARED, "request_queue_time_seconds")
    text = vllm_text(1_000 * asked, seen=4 * asked)
    return text + "".join(_histogram(f"vllm:{name}", asked) for name in names)


def growing_sglang(asked: int) -> str:
    """Give what SGLang exposes when it is asked for the n-th time."""
    names = ("time_to_first_token_seconds", *_SHARED, "queue_time_seconds")
    return sglang_text() + "".join(_histogram(f"sglang:{name}", asked) for name in names)


def _histogram(name: str, asked: int) -> str:
    label = 'model_name="m"'
    return (
        f"# TYPE {name} histogram\n"
        f'{name}_bucket{{le="0.1",{label}}} {asked}\n'
        f'{name}_bucket{{le="+Inf",{label}}} {2 * asked}\n'
        f"{name}_count{{{label}}} {2 * asked}\n"
        f"{name}_sum{{{label}}} {asked / 2}\n"
    )


def _grow(exposer: Exposer, text_of: Callable[[int], str]) -> None:
    """Let an exposer answer with more each time."""

    def answer(handler: Handler) -> None:
        body = text_of(exposer.asked).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain; version=0.0.4")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    exposer.answer = answer


def main() -> None:
    """Expose until told to stop."""
    with exposing() as vllm, exposing() as sglang:
        _grow(vllm, growing_vllm)
        _grow(sglang, growing_sglang)
        sys.stdout.write(f"vllm-0={vllm.url} sglang-0={sglang.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
