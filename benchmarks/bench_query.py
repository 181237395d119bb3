"""How fast questions are answered from a sealed run, with one thread.

    python benchmarks/bench_query.py [--spans N] [--run DIR] [--repeats K] [--json]

The peer in the same run is pandas, which reads the same spans from JSON lines and finds the same
percentiles; of a larger run it is given a sample, and its time is scaled.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from bench_store import find_or_make_run
from reporting import peak_mb, pin_to_one_core, print_table, time_once, time_query, to_json

from rollscope.analysis.rows import SessionRow, SpanRow
from rollscope.answers.facts import SessionSpans
from rollscope.answers.hotspots import find_hotspots
from rollscope.answers.rows import MAYBE_CHARGED, session_rows, sessions_with
from rollscope.answers.scope import StepScope
from rollscope.answers.session import one_session
from rollscope.answers.steps import one_step, steps
from rollscope.answers.stuck import stuck
from rollscope.answers.window import spans_between
from rollscope.model.refs import span_hex
from rollscope.store.embedded import RunStore

_LANES: Final = 64
_SECOND: Final = 1_000_000_000
_PEER_SPANS: Final = 1_000_000
_PERCENTILES: Final = (50, 90, 99)


def open_store(run: Path, now_ns: int | None = None) -> RunStore:
    """Open a run as a command would."""
    return RunStore(run, threads=1, now_ns=now_ns)


def percentiles_sql(store: RunStore) -> str:
    """Give the question for the percentiles of the durations by name."""
    ranks = ", ".join(f"{store.dialect.rank('duration_ns', p)} AS p{p}" for p in _PERCENTILES)
    return f"SELECT name, count(*) AS spans, {ranks} FROM spans GROUP BY name"  # noqa: S608


def session_with_spans(store: RunStore, session_id: int) -> tuple[SessionRow, Sequence[SpanRow]]:
    """Fetch a session and its spans, as answers do."""
    (session,) = sessions_with(store, [session_id])
    spans_of = SessionSpans(store)
    spans_of.prefetch([session])
    return session, spans_of(session_id)


def list_questions(store: RunStore) -> dict[str, Callable[[], object]]:
    """Give what is asked, by title, with values from the middle of the run."""
    (middle,) = store.query(
        "SELECT quantile_disc(start_ns, 0.5) AS at, max(step) // 2 AS step FROM sessions"
    ).to_pylist()
    low = middle["at"]
    lanes = [
        row["session_id"]
        for row in store.query(
            "SELECT session_id FROM sessions WHERE start_ns < $high AND end_ns >= $low "
            "ORDER BY start_ns LIMIT 64",
            low=low,
            high=low + _SECOND,
        ).to_pylist()
    ]
    return {
        "percentiles by name": lambda: store.query(percentiles_sql(store)),
        f"one second of {_LANES} sessions": lambda: spans_between(store, low, low + _SECOND, lanes),
        "one session with its spans": lambda: session_with_spans(store, lanes[0]),
        "all about one session": lambda: one_session(store, span_hex(lanes[0])),
        "what is stuck": lambda: stuck(store),
        "every span without an end": lambda: store.query(
            "SELECT * FROM spans WHERE status IN ('open', 'lost')"
        ),
        "hotspots by path": lambda: find_hotspots(store, StepScope()),
        "sessions of one step": lambda: session_rows(
            store,
            "charged_step = $first",
            among=MAYBE_CHARGED,
            first=middle["step"],
            last=middle["step"],
        ),
        "all about one step": lambda: one_step(store, middle["step"]),
        "the last ten steps, judged": lambda: steps(store),
    }


def seal_if_needed(run: Path) -> int:
    """Make sure that the run is sealed, so that opening it reads no log; give when it ended."""
    with open_store(run) as store:
        if store.sealer.unsealed_rows:
            store.seal()
        (row,) = store.query("SELECT max(last_seen_ns) AS last_ns FROM processes").to_pylist()
    return int(row["last_ns"])


def measure_pandas(store: RunStore, spans: int, repeats: int) -> dict[str, Any]:
    """Let pandas answer for the percentiles, from JSON lines of the same spans."""
    import pandas as pd

    taken = min(spans, _PEER_SPANS)
    columns = "span_id, parent_id, session_id, kind, name, status, start_ns, end_ns, attrs"
    rows = store.query(f"SELECT {columns} FROM spans LIMIT {taken}")  # noqa: S608
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spans.jsonl")
        with path.open("wb") as out:
            for part in rows.to_batches(max_chunksize=50_000):
                out.write(msgspec.json.Encoder().encode_lines(part.to_pylist()))

        def answer() -> object:
            frame = pd.read_json(path, lines=True)
            frame["duration_ns"] = frame["end_ns"] - frame["start_ns"]
            shares = [percent / 100 for percent in _PERCENTILES]
            return frame.groupby("name")["duration_ns"].quantile(shares, interpolation="lower")

        best = min(time_once(answer).wall_s for _ in range(repeats))
    return {"spans": taken, "ms": best * 1e3, "scaled_ms": best * 1e3 * spans / taken}


def make_figures(run: Path, repeats: int) -> dict[str, Any]:
    """Measure everything."""
    # As if it were still running, so that something is stuck.
    now_ns = seal_if_needed(run) + _SECOND
    opening = time_query(lambda: open_store(run).close(), repeats)
    with open_store(run, now_ns) as store:
        spans = store.query("SELECT count(*) AS n FROM spans").to_pylist()[0]["n"]
        questions = list_questions(store)
        found = {"open the run": opening}
        found |= {title: time_query(ask, repeats) for title, ask in questions.items()}
        held = peak_mb()
        pandas = measure_pandas(store, spans, 1)
    ratio = pandas["scaled_ms"] / found["percentiles by name"]["median_ms"]
    return {
        "spans": spans,
        "peak_mb": held,
        "questions": found,
        "pandas": pandas,
        "pandas_x_percentiles": ratio,
    }


def print_figures(figures: dict[str, Any]) -> None:
    """Print the table."""
    rows = [
        [title, *(f"{times[name]:,.1f}" for name in ("first_ms", "median_ms", "best_ms"))]
        for title, times in figures["questions"].items()
    ]
    title = f"{figures['spans']:,} spans, sealed, one thread, milliseconds"
    print_table(title, ["", "first", "median", "best"], rows)
    pandas = figures["pandas"]
    scaled = "" if pandas["spans"] == figures["spans"] else ", scaled to all spans"
    print(
        f"pandas, the same percentiles from JSON lines: {pandas['scaled_ms']:,.0f} ms "
        f"(measured with {pandas['spans']:,} spans{scaled}), "
        f"{figures['pandas_x_percentiles']:,.0f} times as long; "
        f"peak memory before: {figures['peak_mb']:.0f} MB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how fast questions are answered.")
    parser.add_argument("--spans", type=int, default=1_000_000, help="of the run that is made")
    parser.add_argument("--run", type=Path, help="a run to use; made there if it is not there")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    options = parser.parse_args()
    pin_to_one_core()
    with find_or_make_run(options.run, options.spans) as run:
        figures = make_figures(run, options.repeats)
    print_figures(figures)
    if options.json:
        print(to_json("query", figures))


if __name__ == "__main__":
    main()
