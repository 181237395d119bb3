"""Which series of inference engines are kept, and the one name that each gets in a run.

vLLM and SGLang write a colon after their name. Ray, which exposes for them, writes an underscore
and puts `ray_` in front; a run has them under the engine's own name all the same.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rollscope.model.kinds import MetricType

__all__ = ["ENGINE_SERIES", "Chosen", "SeriesChoice", "engine_name"]

_GAUGE, _COUNTER, _HISTOGRAM = MetricType.GAUGE, MetricType.COUNTER, MetricType.HISTOGRAM

ENGINE_SERIES: Final[dict[str, MetricType]] = {
    "vllm:num_requests_running": _GAUGE,
    "vllm:num_requests_waiting": _GAUGE,
    "vllm:kv_cache_usage_perc": _GAUGE,
    "vllm:gpu_cache_usage_perc": _GAUGE,
    "vllm:num_preemptions_total": _COUNTER,
    "vllm:prefix_cache_hits_total": _COUNTER,
    "vllm:prefix_cache_queries_total": _COUNTER,
    "vllm:gpu_prefix_cache_hits_total": _COUNTER,
    "vllm:gpu_prefix_cache_queries_total": _COUNTER,
    "vllm:prompt_tokens_total": _COUNTER,
    "vllm:generation_tokens_total": _COUNTER,
    "vllm:time_to_first_token_seconds": _HISTOGRAM,
    "vllm:inter_token_latency_seconds": _HISTOGRAM,
    "vllm:time_per_output_token_seconds": _HISTOGRAM,
    "vllm:e2e_request_latency_seconds": _HISTOGRAM,
    "vllm:request_queue_time_seconds": _HISTOGRAM,
    "sglang:num_running_reqs": _GAUGE,
    "sglang:num_queue_reqs": _GAUGE,
    "sglang:token_usage": _GAUGE,
    "sglang:num_retracted_reqs": _GAUGE,
    "sglang:cache_hit_rate": _GAUGE,
    "sglang:gen_throughput": _GAUGE,
    "sglang:prompt_tokens_total": _COUNTER,
    "sglang:generation_tokens_total": _COUNTER,
    "sglang:time_to_first_token_seconds": _HISTOGRAM,
    "sglang:inter_token_latency_seconds": _HISTOGRAM,
    "sglang:time_per_output_token_seconds": _HISTOGRAM,
    "sglang:e2e_request_latency_seconds": _HISTOGRAM,
    "sglang:queue_time_seconds": _HISTOGRAM,
}
"""By the engine's own name."""
_PARTS: Final = ("_bucket", "_sum", "_count")
_ENGINE: Final = re.compile(r"(?:ray_)?(vllm|sglang)[:_](.+)")


class Chosen(NamedTuple):
    """What becomes of a line."""

    name: str
    """Of the metric in the run."""
    type: MetricType
    part: str = ""
    """Of a histogram: `_bucket`, `_sum` or `_count`."""


@lru_cache(maxsize=4096)
def engine_name(name: str) -> Chosen | None:
    """Find the series of an engine that a line belongs to; None if it is none that is kept."""
    found = _ENGINE.fullmatch(name)
    if found is None:
        return None
    own = f"{found[1]}:{found[2]}"
    for part in _PARTS:
        base = own.removesuffix(part)
        if base != own and ENGINE_SERIES.get(base) is _HISTOGRAM:
            return Chosen(base, _HISTOGRAM, part)
    # Ray has exposed counters without their ending.
    for full in (own, f"{own}_total"):
        if ENGINE_SERIES.get(full, _HISTOGRAM) is not _HISTOGRAM:
            return Chosen(full, ENGINE_SERIES[full])
    return None


class SeriesChoice:
    """What is kept: series of engines, and what else is asked for."""

    def __init__(self, also: Sequence[str] = ()) -> None:
        """Keep names that fit any of the patterns, such as `ray_node_*`, too."""
        patterns = "|".join(fnmatch.translate(one) for one in also)
        self._also = re.compile(patterns) if patterns else None

    def wants(self, name: str) -> bool:
        """Say whether a line is kept, by its name."""
        return engine_name(name) is not None or self._fits(name)

    def choose(self, name: str, types: Mapping[str, str]) -> Chosen | None:
        """Say what becomes of a line, by its name and the types that were declared."""
        known = engine_name(name)
        if known is not None or not self._fits(name):
            return known
        declared = types.get(name)
        if declared is not None:
            return Chosen(name, _COUNTER if declared == "counter" else _GAUGE)
        base, _, ending = name.rpartition("_")
        match types.get(base), ending:
            case "histogram", "bucket" | "sum" | "count":
                return Chosen(base, _HISTOGRAM, f"_{ending}")
            case _, "created":
                return None
            case "summary", "sum" | "count":
                return Chosen(name, _COUNTER)
            case _, "total":
                return Chosen(name, _COUNTER)
        return Chosen(name, _GAUGE)

    def _fits(self, name: str) -> bool:
        return self._also is not None and any(
            self._also.fullmatch(one) is not None for one in _names_of(name)
        )


def _names_of(name: str) -> tuple[str, ...]:
    """Give the name of a line, and that of its histogram."""
    return (name, *(name.removesuffix(part) for part in _PARTS if name.endswith(part)))
