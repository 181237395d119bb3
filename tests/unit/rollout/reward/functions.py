"""Reward functions, good and bad, that worker processes import."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any


def length(text: str, scale: float = 1.0) -> float:
    return len(text) * scale


async def length_later(text: str) -> float:
    return float(len(text))


def give(value: Any) -> Any:
    return value


def own_pid() -> int:
    return os.getpid()


def hang(mark: str | None = None) -> float:
    """Say that it runs, by a file of that name, and never return."""
    if mark is not None:
        Path(mark).write_text(str(os.getpid()))
    threading.Event().wait()
    return 1.0


def hang_with_child(mark: str) -> float:
    child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    Path(mark).write_text(str(child.pid))
    threading.Event().wait()
    return 1.0


def crash() -> float:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 1.0


def leave() -> float:
    os._exit(7)


def exit_politely() -> float:
    raise SystemExit(3)


def fail(text: str = "no such answer") -> float:
    raise RuntimeError(text)


def fail_until(folder: str, good_try: int) -> float:
    """Work at the nth try, counted by files."""
    tries = Path(folder)
    count = len(list(tries.iterdir())) + 1
    (tries / str(count)).touch()
    if count < good_try:
        raise RuntimeError(f"try {count}")
    return float(count)


def rest(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def wait_for_file(started: str, awaited: str) -> float:
    """Say that it runs, then wait until a pipe of that name is written to."""
    Path(started).write_text("now")
    return float(Path(awaited).read_text())


class Scaled:
    """A reward with state, which travels along."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, text: str) -> float:
        return len(text) * self.scale
