"""What inference engines say of themselves, where their metrics are recorded under their names."""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.answers.source import Source

__all__ = ["ENGINE_METRICS", "Engines", "read_engines"]

ENGINE_METRICS: Final[dict[str, str]] = {
    "vllm:gpu_cache_usage_perc": "kv_use",
    "vllm:kv_cache_usage_perc": "kv_use",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "sglang:token_usage": "kv_use",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
}
"""What each of their gauges tells."""
_RECENT_NS: Final = 5 * 60 * 1_000_000_000
_PLACES: Final = ("replica", "pool", "host", "instance")
"""Labels that say which engine it is; without one, it is that of the process."""


class _Reading(msgspec.Struct):
    what: str
    process: int
    places: frozenset[str]
    value: float


class Engines:
    """The latest readings."""

    def __init__(self, readings: Sequence[_Reading]) -> None:
        self._readings = readings

    def total(self, what: str, name: str, processes: Sequence[int]) -> float | None:
        """Add up what the engines of a host or replica say; None if they say nothing."""
        values = self._of(what, name, processes)
        return sum(values) if values else None

    def mean(self, what: str, name: str, processes: Sequence[int]) -> float | None:
        """Give the mean of what the engines of a host or replica say."""
        values = self._of(what, name, processes)
        return sum(values) / len(values) if values else None

    def _of(self, what: str, name: str, processes: Sequence[int]) -> list[float]:
        return [
            one.value
            for one in self._readings
            if one.what == what and (name in one.places if one.places else one.process in processes)
        ]


def read_engines(source: Source, now_ns: int) -> Engines:
    """Read what engines said last, within five minutes."""
    latest = source.dialect.arg_max("value", "time_ns")
    chosen = source.dialect.is_in("name", "$names")
    sql = f"""
        SELECT name, labels, process, {latest} AS value FROM metrics
        WHERE {chosen} AND time_ns >= $since GROUP BY name, labels, process"""
    names = sorted(ENGINE_METRICS)
    readings = []
    for row in source.query(sql, names=names, since=now_ns - _RECENT_NS).to_pylist():
        labels = msgspec.json.decode(row["labels"], type=dict[str, str])
        places = frozenset(labels[label] for label in _PLACES if label in labels)
        if row["value"] is not None:
            what = ENGINE_METRICS[row["name"]]
            readings.append(_Reading(what, row["process"], places, row["value"]))
    return Engines(readings)
