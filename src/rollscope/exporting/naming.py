"""What processes, tracks and series are called."""

from functools import lru_cache
from typing import Any

import msgspec

from rollscope.exporting.rows import Process

__all__ = ["LANES", "process_title", "series_title", "session_title", "track_title"]

LANES = "lanes"
"""What the process is called that holds them."""
_read_labels = msgspec.json.Decoder(dict[str, Any]).decode


def process_title(process: Process) -> str:
    """Name a process by role, rank and its own number: `[rollout] Rank 0, Process 32392`."""
    if process.process is None:
        return LANES
    role = f"[{process.role}] " if process.role else ""
    rank = "" if process.rank is None else f"Rank {process.rank}, "
    return f"{role}{rank}Process {process.source_pid or f'{process.process:x}'}"


def session_title(
    session_id: int, task_key: str | None, sample: int | None, attempt: int | None
) -> str:
    """Name a session by its task and sample: `gsm8k/8421 #3`."""
    task = task_key or f"session {session_id:x}"
    number = "" if sample is None else f" #{sample}"
    return f"{task}{number}" + (f" attempt {attempt}" if attempt else "")


def track_title(title: str, number: int) -> str:
    """Name a track of a group; the first has the name of the group, the second ends with `#2`."""
    return title if not number else f"{title} #{number + 1}"


@lru_cache(maxsize=4096)
def series_title(name: str, labels: str | None) -> str:
    """Name a series of a metric: `queue_depth{pool=a}`."""
    pairs = _read_labels(labels or "{}")
    inside = ",".join(f"{key}={value}" for key, value in sorted(pairs.items()))
    return f"{name}{{{inside}}}" if inside else name
