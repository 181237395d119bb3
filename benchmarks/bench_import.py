"""How long it takes to import AReaL's session files, and how much memory.

Run it alone: `python benchmarks/bench_import.py [SESSIONS]`. The floor is one pass of the JSON
decoder over the same lines.
"""

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from rollscope.importing.running import import_run

_SESSIONS = 1_000_000
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


def _decode_all(folder: Path) -> None:
    decode = msgspec.json.Decoder().decode
    for path in folder.iterdir():
        with open(path, "rb") as file:
            for line in file:
                decode(line)


def main() -> None:
    """Print one table and one JSON line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _SESSIONS
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "sessions")
        folder.mkdir()
        size = write_sessions(folder, count)
        began = time.process_time()
        _decode_all(folder)
        floor_s = time.process_time() - began
        began, wall = time.process_time(), time.perf_counter()
        report = import_run([folder], Path(made, "run"))
        cpu_s, wall_s = time.process_time() - began, time.perf_counter() - wall
    assert report.counts["sessions accepted"] + report.counts["sessions rejected"] == count
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} sessions, {size / 1e6:,.0f} MB")
    print(f"  decoding alone {floor_s:6.1f} s CPU")
    print(f"  import         {cpu_s:6.1f} s CPU, {wall_s:.1f} s wall, {cpu_s / floor_s:.1f}x")
    print(f"  peak memory    {peak_mb:6.0f} MB")
    figures = {"sessions": count, "cpu_s": cpu_s, "wall_s": wall_s, "floor_s": floor_s}
    print(json.dumps({"bench": "import", **figures, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
