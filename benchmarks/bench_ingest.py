"""How much is collected over a network, how soon it is seen, and what it costs those who record.

    python benchmarks/bench_ingest.py [--only PART] [--rounds N] [--spans N] [--json]
    python benchmarks/bench_ingest.py --only sustained [--rate N] [--seconds N] [--rounds N]

*native* posts prepared frames to `rollscope view`, *page* does so at a rate with the page open,
*sustained*, only where asked for, goes on with that and says how far behind the timeline is,
*otlp* posts prepared protobuf to it and to rotel in the same round, *hub* records in four actors of
a Ray cluster, *caller* compares what a span costs its thread with each sink. The server has one
core, senders have the other; but Ray's processes, which are many, have all there are. Medians of
rounds count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingesting import calling, hubbing
from ingesting.bodies import Native, make_native
from ingesting.limits import judged_rows
from ingesting.measures import measure_native, measure_otlp, measure_page
from ingesting.receivers import Receiver, cores, on_core, rollscope
from ingesting.sustaining import measure_sustained
from reporting import print_table, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

Figures = dict[str, float]

_RATE: Final = 300_000
_NATIVE_TIMES: Final = 3
_SCRIPT: Final = Path(__file__).resolve()
_PARTS: Final = ("native", "page", "otlp", "hub", "caller")
_SUSTAINED: Final = "sustained"


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure collection over a network.")
    parser.add_argument(
        "--only", choices=(*_PARTS, _SUSTAINED), action="append", help="may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--spans", type=int, default=600_000, help="of a run that is sent, and of each Ray round"
    )
    parser.add_argument("--rate", type=int, default=_RATE, help="spans a second, for `sustained`")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long `sustained` sends")
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    parser.add_argument("--worker", choices=("caller", "hub"), help=argparse.SUPPRESS)
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure_server(
    folder: Path, native: Native | None, number: int, parts: tuple[str, ...]
) -> dict[str, Figures]:
    """Measure what one server takes; each round has a server of its own."""
    figures: dict[str, Figures] = {}
    with rollscope(folder / f"runs-{number}") as server, on_core(cores()[1]):
        if native is not None and "native" in parts:
            figures["native"] = measure_native(server, native, "native", _NATIVE_TIMES)
        if native is not None and "page" in parts:
            figures["page"] = measure_page(server, native, "page", _RATE)
            figures["page"]["peak_mb"] = server.peak_mb()
        if "otlp" in parts:
            figures |= _measure_otlp(server)
    return figures


def _measure_otlp(server: Receiver) -> dict[str, Figures]:
    return {f"otlp_{spans}": measure_otlp(server, spans) for spans in (512, 5000)}


def measure_round(
    folder: Path, native: Native | None, number: int, options: argparse.Namespace
) -> dict[str, Figures]:
    """Measure everything once."""
    parts = tuple(options.only or _PARTS)
    figures: dict[str, Figures] = {}
    if set(parts) & {"native", "page", "otlp"}:
        figures |= measure_server(folder, native, number, parts)
    others: dict[str, Callable[[], Figures]] = {
        "hub": lambda: hubbing.measure_hub(_SCRIPT, options.spans // 4),
        "caller": lambda: calling.measure_callers(_SCRIPT),
    }
    for part, measure in others.items():
        if part in parts:
            figures[part] = measure()
    return figures


def measure_at_rate(folder: Path, native: Native, number: int, rate: int) -> Figures:
    """Measure a server of its own that has to show what comes at a rate."""
    with rollscope(folder / f"sustained-{number}") as server, on_core(cores()[1]):
        return measure_sustained(server, native, _SUSTAINED, rate)


def medians(rounds: list[dict[str, Figures]]) -> dict[str, Figures]:
    """Give the median of each figure."""
    return {
        part: {
            name: statistics.median(one[part][name] for one in rounds) for name in rounds[0][part]
        }
        for part in rounds[0]
    }


def main() -> None:
    """Run the rounds and print the table."""
    options = parse_arguments()
    if options.worker == "caller":
        calling.work(options.subject)
        return
    if options.worker == "hub":
        hubbing.work(options.spans)
        return
    parts = set(options.only or _PARTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        native = make_native(folder, options.spans) if parts & {"native", "page"} else None
        lasting = None
        if _SUSTAINED in parts:
            spans = int(options.rate * options.seconds)
            lasting = make_native(folder / _SUSTAINED, spans, is_alive=True)
        rounds = []
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            rounds.append(measure_round(folder, native, number, options))
            if lasting is not None:
                rounds[-1][_SUSTAINED] = measure_at_rate(folder, lasting, number, options.rate)
    figures = medians(rounds)
    title = f"Collection, server on core {cores()[0]}, medians of {options.rounds} rounds"
    print_table(title, ["", "figure", "wanted", ""], judged_rows(figures))
    if options.json:
        print(to_json("ingest", {**figures, "rounds": rounds}))


if __name__ == "__main__":
    main()
