"""What inference engines said over a stretch of time, such as that of a session."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rollscope.answers.engines import ENGINE_METRICS, INSTANCE, engine_labels, replica_of, share_of
from rollscope.answers.moment import moment_of
from rollscope.answers.source import Source

__all__ = ["EngineHistory", "EngineLine", "engine_history"]

_USUAL_NS: Final = 15 * 60 * 1_000_000_000
_LEAST_WIDTH_NS: Final = 1_000_000_000
_READINGS_EACH: Final = 2
"""That a stretch of time holds at least, or the line would have gaps."""
_MOST_LINES: Final = 12
_MEANS: Final = frozenset({"kv_use", "hit_rate"})
_ADDED: Final = frozenset({"preempted", "hits", "queries", "tokens"})

Values = list[float | None]


class EngineLine(msgspec.Struct, kw_only=True):
    """One replica; each list has a value for each position, None where nothing was said."""

    replica: str
    kv_use: Values
    """Share of the key-value cache in use."""
    running: Values
    waiting: Values
    preempted: Values
    """Requests put off within the stretch of time."""
    prefix_hits: Values
    """Share of looked-up prompt tokens that were cached."""
    tokens_per_s: Values


class EngineHistory(msgspec.Struct, kw_only=True):
    """All replicas over the same time, by name."""

    positions: list[int]
    """When each stretch of time begins."""
    width_ns: int
    lines: list[EngineLine]
    left_out: int
    """Replicas beyond the first few."""


def engine_history(
    source: Source,
    replica: str = "",
    *,
    points: int = 120,
    since_ns: int | None = None,
    until_ns: int | None = None,
) -> EngineHistory:
    """Tell how engines did over time.

    Args:
        source: The run.
        replica: Only this one, if it is known; all of them else.
        points: How many stretches of time there are at most.
        since_ns: From when; a quarter of an hour before the end if not given.
        until_ns: Until when; now if not given.
    """
    moment = moment_of(source)
    end_ns = until_ns or moment.now_ns
    start_ns = since_ns or max(end_ns - _USUAL_NS, min(moment.first_ns, end_ns))
    spacing_ns = _spacing_ns(source, start_ns, end_ns)
    least_ns = max(spacing_ns * _READINGS_EACH, _LEAST_WIDTH_NS)
    width_ns = max(-(-(end_ns - start_ns) // points), least_ns)
    count = max(-(-(end_ns - start_ns) // width_ns), 1)
    first_ns = end_ns - count * width_ns  # the last one is whole
    found, own = _Found(), _Found()
    for row in _rows(source, first_ns, end_ns, width_ns):
        labels, places = engine_labels(row["labels"])
        found.add(labels, row)
        if replica in places:
            own.add(labels, row)
    found = own if own.has_any else found
    lines = [_line(one, count, spacing_ns or width_ns) for one in found.replicas()]
    return EngineHistory(
        positions=[first_ns + number * width_ns for number in range(count)] if lines else [],
        width_ns=width_ns,
        lines=lines[:_MOST_LINES],
        left_out=max(len(lines) - _MOST_LINES, 0),
    )


class _Replica:
    """What the engines of a replica told, each list by the number of the stretch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        """By what is told."""
        self.terms: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        """How many engines told it."""
        self.answers: dict[int, float] = {}
        """How often they answered."""
        self.instances: set[str] = set()

    def add(self, what: str, place: int, value: float) -> None:
        self.sums[what][place] += value
        self.terms[what][place] += 1


class _Found:
    """Gathers what was told."""

    def __init__(self) -> None:
        self._replicas: dict[str, _Replica] = {}
        self._answers: dict[str, dict[int, float]] = defaultdict(dict)
        self._asked: dict[str, str] = {}

    @property
    def has_any(self) -> bool:
        """Whether anything was told."""
        return bool(self._replicas or self._asked)

    def add(self, labels: Mapping[str, str], row: dict[str, Any]) -> None:
        """Take what one series told within one stretch."""
        what, place, total = ENGINE_METRICS[row["name"]], row["place"], row["total"]
        name, instance = replica_of(labels), labels.get(INSTANCE, "")
        if what == "up":
            self._answers[instance][place] = total
            self._asked[instance] = name
            return
        replica = self._replicas.setdefault(name, _Replica(name))
        replica.instances.add(instance)
        replica.add(what, place, total if what in _ADDED else total / row["readings"])

    def replicas(self) -> list[_Replica]:
        """Give all replicas by name, those that never answered too."""
        told = {one for replica in self._replicas.values() for one in replica.instances}
        for instance, name in self._asked.items():
            if instance not in told:
                self._replicas.setdefault(name, _Replica(name)).instances.add(instance)
        for replica in self._replicas.values():
            for instance in replica.instances:
                _leave_out_first(self._answers[instance])
                for place, times in self._answers[instance].items():
                    replica.answers[place] = max(replica.answers.get(place, 0.0), times)
        return [replica for _, replica in sorted(self._replicas.items())]


def _leave_out_first(answers: dict[int, float]) -> None:
    """Forget the answer that told where counts stood, and added nothing."""
    first = min(answers, default=0)
    if first > 0:
        answers[first] -= 1


def _spacing_ns(source: Source, start_ns: int, end_ns: int) -> int:
    """Find how far apart engines were asked; 0 if nobody asked."""
    sql = """
        SELECT min((last_ns - first_ns) / (readings - 1)) AS spacing_ns
        FROM (
            SELECT count(*) AS readings, min(time_ns) AS first_ns, max(time_ns) AS last_ns
            FROM metrics
            WHERE name = 'rollscope.engine.up' AND value > 0
                AND time_ns BETWEEN $since AND $until
            GROUP BY labels, process
        ) AS asked WHERE readings > 1"""
    # Somewhat more than the time itself, which may be shorter than one reading.
    around_ns = 60_000_000_000
    (row,) = source.query(sql, since=start_ns - around_ns, until=end_ns + around_ns).to_pylist()
    return round(row["spacing_ns"] or 0)


def _rows(source: Source, first_ns: int, end_ns: int, width_ns: int) -> list[dict[str, Any]]:
    """Add up each series within each stretch of time."""
    place = source.dialect.floor("(time_ns - $first) / $width")
    chosen = source.dialect.is_in("name", "$names")
    # A server that was started again goes on with what another process began.
    teller = f"CASE WHEN position('\"{INSTANCE}\":' IN labels) > 0 THEN 0 ELSE process END"
    sql = f"""
        SELECT name, labels, {place} AS place, sum(value) AS total, count(value) AS readings
        FROM metrics WHERE {chosen} AND time_ns >= $first AND time_ns < $until
        GROUP BY name, labels, {teller}, {place}"""
    names = sorted(ENGINE_METRICS)
    rows = source.query(sql, names=names, first=first_ns, until=end_ns, width=width_ns)
    return [row for row in rows.to_pylist() if row["readings"]]


def _line(replica: _Replica, count: int, spacing_ns: int) -> EngineLine:
    """Make the line of a replica.

    Args:
        replica: What it told.
        count: How many stretches there are.
        spacing_ns: How long its engines counted between two answers.
    """
    is_sglang = "throughput" in replica.sums
    """SGLang reports what vLLM leaves to be counted."""

    def told(what: str) -> Values:
        sums, terms = replica.sums.get(what, {}), replica.terms.get(what, {})
        return [
            sums[place] / (terms[place] if what in _MEANS else 1) if place in sums else None
            for place in range(count)
        ]

    def added(what: str) -> Values:
        """Give counts; where an engine answered and counted nothing, it is 0."""
        sums = replica.sums.get(what, {})
        return [
            sums.get(place, 0.0 if replica.answers.get(place) else None) for place in range(count)
        ]

    def rate(place: int, value: float | None) -> float | None:
        counted_s = max(replica.answers.get(place, 0.0), 1.0) * spacing_ns / 1e9
        return None if value is None else value / counted_s

    hits, queries = replica.sums.get("hits", {}), replica.sums.get("queries", {})
    return EngineLine(
        replica=replica.name,
        kv_use=told("kv_use"),
        running=told("running"),
        waiting=told("waiting"),
        preempted=told("preempted_now") if is_sglang else added("preempted"),
        prefix_hits=[
            share_of(hits.get(place, 0.0), queries[place]) if place in queries else value
            for place, value in enumerate(told("hit_rate"))
        ],
        tokens_per_s=told("throughput")
        if is_sglang
        else [rate(place, value) for place, value in enumerate(added("tokens"))],
    )
