"""Engines: vLLM and SGLang, as Prometheus scrapes them itself."""

from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.frame import Section, chosen, framed
from dashboards.panels import lines
from dashboards.queries import SEPARATOR, Query

__all__ = ["engines"]

_WHERE: Final = 'run=~"$run", replica=~"$replica"'
_BY: Final = "run, replica"
_NAME: Final = f"{{{{replica}}}}{SEPARATOR}{{{{run}}}}"
_LATENCIES: Final = {
    "Time to first token": ("time_to_first_token_seconds",) * 2,
    "Time between tokens": ("inter_token_latency_seconds",) * 2,
    "Length of requests": ("e2e_request_latency_seconds",) * 2,
    "Time in the queue": ("request_queue_time_seconds", "queue_time_seconds"),
}
"""By title: the histograms of vLLM and of SGLang."""


def engines() -> Dashboard:
    """Make the dashboard."""
    return framed(
        "rollscope-engines",
        "engines",
        "Cache, queue and throughput of inference engines, vLLM and SGLang alike.",
        Section("Load", _load()),
        Section("Latency", [_latency(title, *names) for title, names in _LATENCIES.items()]),
        variables=[
            chosen(
                *("replica", "Replica", 'label_values(up{job="engines"}, replica)'),
                "The engines that are shown.",
            )
        ],
    )


def _gauges(vllm: str, sglang: str) -> tuple[Query, Query]:
    """Ask for a gauge under the names that it has with each engine."""
    return (
        Query(f"sum by ({_BY}) (vllm:{vllm}{{{_WHERE}}})", _NAME),
        Query(f"sum by ({_BY}) (sglang:{sglang}{{{_WHERE}}})", _NAME),
    )


def _load() -> list[Builder[Panel]]:
    return [
        lines(
            "Use of the cache",
            "Share of the KV cache that is in use. Near 1 requests are put off.",
            "percentunit",
            Query(f"avg by ({_BY}) (vllm:kv_cache_usage_perc{{{_WHERE}}})", _NAME),
            Query(f"avg by ({_BY}) (sglang:token_usage{{{_WHERE}}})", _NAME),
            most=1,
        ),
        lines(
            "Running",
            "Requests that are being worked on.",
            "short",
            *_gauges("num_requests_running", "num_running_reqs"),
        ),
        lines(
            "Waiting",
            "Requests that wait for room.",
            "short",
            *_gauges("num_requests_waiting", "num_queue_reqs"),
        ),
        lines(
            "Put off",
            "Requests that had to give way: preemptions of vLLM by second, and how many SGLang"
            " has retracted by its last report.",
            "short",
            Query(f"sum by ({_BY}) (rate(vllm:num_preemptions_total{{{_WHERE}}}[5m]))", _NAME),
            Query(f"sum by ({_BY}) (sglang:num_retracted_reqs{{{_WHERE}}})", _NAME),
        ),
        lines(
            "Throughput",
            "Tokens made by second.",
            "suffix: tok/s",
            Query(f"sum by ({_BY}) (rate(vllm:generation_tokens_total{{{_WHERE}}}[1m]))", _NAME),
            Query(f"sum by ({_BY}) (sglang:gen_throughput{{{_WHERE}}})", _NAME),
        ),
        lines(
            "Prefixes found",
            "Share of tokens of prompts that were found in the cache.",
            "percentunit",
            Query(
                f"sum by ({_BY}) (rate(vllm:prefix_cache_hits_total{{{_WHERE}}}[5m]))"
                f" / sum by ({_BY}) (rate(vllm:prefix_cache_queries_total{{{_WHERE}}}[5m]))",
                _NAME,
            ),
            Query(f"avg by ({_BY}) (sglang:cache_hit_rate{{{_WHERE}}})", _NAME),
            most=1,
        ),
        lines(
            "Answering",
            "1 while an engine answers Prometheus, 0 while it does not.",
            "none",
            Query(f'min by ({_BY}) (up{{job="engines", {_WHERE}}})', _NAME),
            width=24,
            most=1,
        ),
    ]


def _latency(title: str, vllm: str, sglang: str) -> Builder[Panel]:
    return lines(
        title,
        "One request in twenty takes longer, by five minutes.",
        "s",
        Query(_p95(f"vllm:{vllm}"), _NAME),
        Query(_p95(f"sglang:{sglang}"), _NAME),
        width=12,
    )


def _p95(family: str) -> str:
    rate = f"rate({family}_bucket{{{_WHERE}}}[5m])"
    return f"histogram_quantile(0.95, sum by ({_BY}, le) ({rate}))"
