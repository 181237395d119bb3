"""What inference engines say of themselves, where their metrics are recorded under their names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from rollscope.answers.source import Source

__all__ = [
    "ENGINE_METRICS",
    "INSTANCE",
    "PLACES",
    "Engines",
    "engine_labels",
    "read_engines",
    "replica_of",
    "share_of",
]

ENGINE_METRICS: Final[dict[str, str]] = {
    "vllm:gpu_cache_usage_perc": "kv_use",
    "vllm:kv_cache_usage_perc": "kv_use",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:num_preemptions_total": "preempted",
    "vllm:prefix_cache_hits_total": "hits",
    "vllm:prefix_cache_queries_total": "queries",
    "vllm:gpu_prefix_cache_hits_total": "hits",
    "vllm:gpu_prefix_cache_queries_total": "queries",
    "vllm:generation_tokens_total": "tokens",
    "sglang:token_usage": "kv_use",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:num_retracted_reqs": "preempted_now",
    "sglang:cache_hit_rate": "hit_rate",
    "sglang:gen_throughput": "throughput",
    "rollscope.engine.up": "up",
}
"""What each of their metrics tells; counters by what was added."""
_RECENT_NS: Final = 5 * 60 * 1_000_000_000
_ADDED_NS: Final = 30 * 1_000_000_000
PLACES: Final = ("replica", "pool", "host", "instance")
"""Labels that say which engine it is; without one, it is that of the process."""
INSTANCE: Final = "instance"


class _Reading(msgspec.Struct):
    what: str
    process: int
    places: frozenset[str]
    replica: str
    instance: str
    value: float
    """The latest."""
    added: float
    """Of a counter, in the last half minute."""
    answers: int
    """Readings in that time."""
    between_s: float | None
    """How far apart readings are."""
    is_new: bool
    """Whether all of them are of that time."""


class Engines:
    """The latest readings."""

    def __init__(self, readings: Sequence[_Reading]) -> None:
        self._up = {one.instance: one for one in readings if one.what == "up"}
        self._readings = [
            one
            for one in readings
            if one.what == "up" or one.instance not in self._up or self._up[one.instance].value
        ]
        """Of those that still answer, and of those that nobody asks."""

    def replicas(self) -> dict[str, str]:
        """Name the replicas that are asked, each with the host and port of one of its engines."""
        telling = {one.instance for one in self._readings if one.what != "up"}
        return {
            one.replica: one.instance
            for one in self._readings
            if one.instance in self._up and (one.what != "up" or one.instance not in telling)
        }

    def total(self, what: str, name: str, processes: Sequence[int]) -> float | None:
        """Add up what the engines of a host or replica say; None if they say nothing."""
        return _total(one.value for one in self._of(what, name, processes))

    def mean(self, what: str, name: str, processes: Sequence[int]) -> float | None:
        """Give the mean of what the engines of a host or replica say."""
        values = [one.value for one in self._of(what, name, processes)]
        return sum(values) / len(values) if values else None

    def preempted(self, name: str, processes: Sequence[int]) -> float | None:
        """Count requests that were put off in the last half minute.

        Of SGLang, as of its last report. Nothing was put off where that is counted, but no count
        has been recorded.
        """
        counted = _total(one.added for one in self._of("preempted", name, processes))
        if counted is None:
            counted = self.total("preempted_now", name, processes)
        if counted is None and self._counts(name, processes):
            counted = 0.0
        return counted

    def hit_rate(self, name: str, processes: Sequence[int]) -> float | None:
        """Give the share of looked-up prompt tokens that were cached, over the last half minute."""
        hits = _total(one.added for one in self._of("hits", name, processes))
        queries = _total(one.added for one in self._of("queries", name, processes))
        if queries is not None:
            return share_of(hits or 0.0, queries)
        return self.mean("hit_rate", name, processes)

    def tokens_per_s(self, name: str, processes: Sequence[int]) -> float | None:
        """Give how many tokens were generated a second, over the last half minute."""
        rates = [
            one.added / self._covered_s(one.instance) for one in self._of("tokens", name, processes)
        ]
        if not rates and self._counts(name, processes):
            rates = [0.0]
        rates += [one.value for one in self._of("throughput", name, processes)]
        return _total(rates)

    def down(self, name: str, processes: Sequence[int]) -> int:
        """Count the engines that do not answer."""
        return sum(not one.value for one in self._of("up", name, processes))

    def _of(self, what: str, name: str, processes: Sequence[int]) -> list[_Reading]:
        return [
            one
            for one in self._readings
            if one.what == what and (name in one.places if one.places else one.process in processes)
        ]

    def _counts(self, name: str, processes: Sequence[int]) -> bool:
        """Say whether they are asked, and do not report what SGLang reports instead of counts."""
        return any(
            one.value and one.answers > 1 for one in self._of("up", name, processes)
        ) and not self._of("throughput", name, processes)

    def _covered_s(self, instance: str) -> float:
        """Give how long the readings of the last half minute were counted over."""
        up = self._up.get(instance)
        if up is None or up.between_s is None or not up.answers:
            return _ADDED_NS / 1e9
        # The first answer there is tells where counts stand, and adds nothing.
        return max((up.answers - up.is_new) * up.between_s, 1e-3)


def read_engines(source: Source, now_ns: int) -> Engines:
    """Read what engines said last, within five minutes, and counted in the last half minute."""
    latest = source.dialect.arg_max("value", "time_ns")
    chosen = source.dialect.is_in("name", "$names")
    sql = f"""
        SELECT name, labels, process, {latest} AS latest, count(*) AS readings,
            min(time_ns) AS first_ns, max(time_ns) AS last_ns,
            sum(CASE WHEN time_ns > $recent THEN value ELSE 0.0 END) AS added,
            sum(CASE WHEN time_ns > $recent THEN 1 ELSE 0 END) AS answers
        FROM metrics WHERE {chosen} AND time_ns >= $since AND time_ns <= $now
        GROUP BY name, labels, process"""
    rows = source.query(
        sql,
        names=sorted(ENGINE_METRICS),
        since=now_ns - _RECENT_NS,
        recent=now_ns - _ADDED_NS,
        now=now_ns,
    )
    newest: dict[tuple[str, str, int], _Reading] = {}
    told = [row for row in rows.to_pylist() if row["latest"] is not None]
    for row in sorted(told, key=lambda row: row["last_ns"]):
        reading = _reading_of(row)
        # Of servers that ask the same engine, after a restart say, the one that asked last counts.
        teller = 0 if reading.instance else reading.process
        newest[row["name"], row["labels"], teller] = reading
    return Engines(list(newest.values()))


def _reading_of(row: Mapping[str, Any]) -> _Reading:
    labels, places = engine_labels(row["labels"])
    times = row["readings"] - 1
    return _Reading(
        ENGINE_METRICS[row["name"]],
        row["process"],
        places,
        replica_of(labels),
        labels.get(INSTANCE, ""),
        row["latest"],
        row["added"],
        row["answers"],
        (row["last_ns"] - row["first_ns"]) / 1e9 / times if times else None,
        row["readings"] == row["answers"],
    )


def engine_labels(text: str) -> tuple[Mapping[str, str], frozenset[str]]:
    """Read labels, and what of them says which engine it is."""
    labels = msgspec.json.decode(text, type=dict[str, str])
    return labels, frozenset(labels[label] for label in PLACES if label in labels)


def replica_of(labels: Mapping[str, str]) -> str:
    """Give the name that an engine is shown by."""
    return next((labels[label] for label in PLACES if label in labels), "")


def share_of(part: float, whole: float) -> float | None:
    """Give a share; None of nothing."""
    return part / whole if whole > 0 else None


def _total(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) if listed else None
