"""A reader of the classic files, written to their description, and a tracer to fill them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Config", "SessionConfig", "perf", "read", "sessions", "spans"]


@dataclass
class SessionConfig:
    enabled: bool = True
    flush_threshold: Any = 256


@dataclass
class Config:
    fileroot: str
    experiment_name: str = "exp"
    trial_name: str = "trial"
    enabled: bool = True
    save_interval: Any = 1
    profile_steps: Any = None
    session_tracer: Any = field(default_factory=SessionConfig)
    sync_writes: bool = False


def read(folder: Path, pattern: str) -> list[dict[str, Any]]:
    lines = [
        line for path in sorted(folder.rglob(pattern)) for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


def perf(folder: Path) -> list[dict[str, Any]]:
    return read(folder, "traces-r*.jsonl")


def spans(folder: Path) -> dict[str, dict[str, Any]]:
    return {event["name"]: event for event in perf(folder) if event["ph"] == "X"}


def sessions(folder: Path) -> list[dict[str, Any]]:
    return read(folder, "sessions-r*.jsonl")
