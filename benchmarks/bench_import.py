"""How long it takes to import session files, a Chrome trace or OTLP, and how much memory.

Run it alone: `python benchmarks/bench_import.py [RECORDS] [sessions|chrome|otlp]`. The floor is one
pass of the JSON decoder over the same records.
"""

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from rollscope.importing.running import import_run

_RECORDS = 1_000_000
_RANKS = 4
_SAMPLES = 4


def write_sessions(folder: Path, count: int) -> int:
    """Write made-up session files, one per rank; give their size."""
    draw = random.Random(1)
    each = count // _RANKS
    for rank in range(_RANKS):
        with open(folder / f"sessions-r{rank}.jsonl", "w") as file:
            for number in range(each):
                task = number // _SAMPLES
                start = 1763000000.0 + task * 0.5
                reward = start + draw.uniform(1, 30)
                end = reward + draw.uniform(0.05, 0.4)
                is_good = task % 5 > 0
                record = {
                    "task_id": task,
                    "session_id": number,
                    "rank": rank,
                    "role": "rollout",
                    "status": "accepted" if is_good else "rejected",
                    **({} if is_good else {"reason": "rejected"}),
                    "submit_ts": start,
                    "finalized_ts": start + 31.0,
                    "total_s": 31.0,
                    "generate_s": reward - start,
                    "reward_s": end - reward,
                    "phases": {
                        "generate": [{"start_ts": start, "end_ts": reward}],
                        "reward": [{"start_ts": reward, "end_ts": end}],
                    },
                    "counters": {"output_tokens": draw.randrange(2000)},
                }
                file.write(json.dumps(record) + "\n")
    return sum(path.stat().st_size for path in folder.iterdir())


def write_chrome(folder: Path, count: int) -> int:
    """Write a made-up document of complete events, each on a line; give its size."""
    draw = random.Random(1)
    path = folder / "trace.json"
    with open(path, "w") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        for number in range(count):
            event = {
                "name": f"op{number % 200}",
                "cat": "compute",
                "ph": "X",
                "ts": 1763000000000000.0 + number * 10.25,
                "dur": round(draw.uniform(1, 1000), 3),
                "pid": 1000 + number % 4,
                "tid": number % 16,
                "args": {"step": number // 1000, "bytes": number},
            }
            file.write(json.dumps(event) + (",\n" if number < count - 1 else "\n"))
        file.write("]}\n")
    return path.stat().st_size


def write_otlp(folder: Path, count: int) -> int:
    """Write made-up requests of 128 spans, four of a session, as XTuner does; give their size."""
    draw = random.Random(1)
    path = folder / "traces.jsonl"
    resource_ = {"attributes": _pairs({"service.name": "rollout", "run.id": "made-up"})}
    spans: list[dict[str, Any]] = []
    with open(path, "w") as file:
        for number in range(count // 4):
            spans += _spans(number, draw)
            if len(spans) >= 128 or number == count // 4 - 1:
                parts = [{"scope": {"name": "xtuner"}, "spans": spans}]
                request = {"resourceSpans": [{"resource": resource_, "scopeSpans": parts}]}
                file.write(json.dumps(request, separators=(",", ":")) + "\n")
                spans = []
    return path.stat().st_size


def _spans(number: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Give the spans of a session, the root last."""
    trace, ids = f"{draw.getrandbits(127) | 1:032x}", [draw.getrandbits(63) | 1 for _ in "abcd"]
    start = 1_794_000_000_000_000_000 + number * 10_000_000
    said: dict[str, str | int] = {
        "xtuner.rollout_id": number,
        "xtuner.group_id": number // 8,
        "xtuner.session_id": number * 7,
        "xtuner.task_name": "gsm8k",
        "xtuner.producer_future_step": number // 1024,
        "xtuner.status": "completed",
        "prompt.tokens": draw.randrange(200),
        "completion.tokens": draw.randrange(800),
        "finish_reason": "stop",
    }
    names = ("rollout.worker.generate", "rollout.controller.generate", "judger.run", "agent.run")
    for place, (name, parent) in enumerate(zip(names, (1, 3, 3, None), strict=True)):
        yield {
            "traceId": trace,
            "spanId": f"{ids[place]:016x}",
            "parentSpanId": "" if parent is None else f"{ids[parent]:016x}",
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(start + place * 1000),
            "endTimeUnixNano": str(start + draw.randrange(10**9, 30 * 10**9)),
            "attributes": _pairs({"xtuner.stage": name, **said}),
            "status": {},
        }


def _pairs(attrs: dict[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": one} if isinstance(one, str) else {"intValue": one}}
        for key, one in attrs.items()
    ]


_WRITERS = {"sessions": write_sessions, "chrome": write_chrome, "otlp": write_otlp}


def _decode_all(folder: Path) -> None:
    decode = msgspec.json.Decoder().decode
    for path in folder.iterdir():
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(b'{"') and b"traceEvents" not in line:
                    decode(line.rstrip(b",\n"))


def main() -> None:
    """Print one table and one JSON line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _RECORDS
    what = sys.argv[2] if len(sys.argv) > 2 else "sessions"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "files")
        folder.mkdir()
        size = _WRITERS[what](folder, count)
        began = time.process_time()
        _decode_all(folder)
        floor_s = time.process_time() - began
        began, wall = time.process_time(), time.perf_counter()
        report = import_run([folder], Path(made, "run"))
        cpu_s, wall_s = time.process_time() - began, time.perf_counter() - wall
    assert sum(file.imported for file in report.files) == count
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} {what}, {size / 1e6:,.0f} MB")
    print(f"  decoding alone {floor_s:6.1f} s CPU")
    print(f"  import         {cpu_s:6.1f} s CPU, {wall_s:.1f} s wall, {cpu_s / floor_s:.1f}x")
    print(f"  peak memory    {peak_mb:6.0f} MB")
    figures = {"what": what, "records": count, "cpu_s": cpu_s, "wall_s": wall_s, "floor_s": floor_s}
    print(json.dumps({"bench": "import", **figures, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
