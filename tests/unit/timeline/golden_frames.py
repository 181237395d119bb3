"""One small run and its view frames, which the page's decoder is held to as well.

Run as a module, it writes the golden files anew: `python -m tests.unit.timeline.golden_frames`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import TileQuery, TimelineIndex, decode_frame

__all__ = ["GOLDEN", "decoded", "make_frames"]

GOLDEN = Path(__file__).parents[2] / "golden" / "view-frames"
SHAPE = RunShape(
    seed=5,
    steps=1,
    tasks_per_step=3,
    group_size=2,
    rollout_processes=2,
    slots=3,
    stuck_sessions=1,
    parallel_tools=2,
    max_turns=2,
    dying_process=True,
    clock_offsets_s=(0.0,),
)


def make_frames(folder: Path) -> dict[str, bytes]:
    """Generate the run, let an index see it grow, and give a frame of each kind."""
    truth = generate_run(folder / "whole", SHAPE)
    run = folder / "run"
    (run / "log").mkdir(parents=True)
    logs = {path.name: path.read_bytes() for path in sorted((folder / "whole" / "log").iterdir())}
    for name, data in logs.items():
        (run / "log" / name).write_bytes(data[: len(data) // 2])
    with RunStore(run, threads=1, now_ns=truth.end_ns) as store:
        index = TimelineIndex(store, "host")
        since = index.seq
        for name, data in logs.items():
            (run / "log" / name).write_bytes(data)
        store.refresh()
        index.extend()
        middle_ns = (index.t0_ns + index.last_ns) // 2
        query = TileQuery(t0_ns=index.t0_ns, t1_ns=middle_ns, width=40, first=1, lanes=6)
        return {
            "delta": index.delta(since),
            "raw": index.frame("raw"),
            "packed": index.frame("packed"),
            "tile": index.tile(query, overview=16, silhouettes=True),
        }


def decoded(data: bytes) -> dict[str, Any]:
    """Give a frame as plain JSON."""
    frame = decode_frame(data)
    columns = {name: column.tolist() for name, column in frame.columns.items()}
    return {"header": frame.header, "columns": columns}


def rewrite() -> None:
    """Write the golden files."""
    with tempfile.TemporaryDirectory() as folder:
        frames = make_frames(Path(folder))
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for kind, data in frames.items():
        (GOLDEN / f"{kind}.rsv").write_bytes(data)
    content = {kind: decoded(data) for kind, data in frames.items()}
    (GOLDEN / "decoded.json").write_text(json.dumps(content, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    rewrite()
