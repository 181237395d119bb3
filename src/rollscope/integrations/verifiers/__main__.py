"""`python -m rollscope.integrations.verifiers FOLDER`: an output folder as a run that grows."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from rollscope.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["follow", "main"]


def follow(folder: Path, run: Path, every_s: float, stop: threading.Event) -> int:
    """Write a run from an output folder of verifiers or prime-rl until it is enough.

    Args:
        folder: Where `rollouts` or `traces` are.
        run: The run directory.
        every_s: How often to look.
        stop: Set when it is enough.

    Returns:
        How many records were read.

    Raises:
        CommandError: The run exists and was not made so, or there is no such folder.
    """
    from rollscope.importing.verifiers_live import Following

    following = Following(folder, run)
    count = 0
    try:
        while not stop.is_set():
            fresh = following.poll()
            count += fresh
            if not fresh:
                stop.wait(every_s)
    except KeyboardInterrupt:
        pass
    finally:
        following.close()
    return count


def main(argv: Sequence[str] | None = None) -> int:
    """Follow a folder until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m rollscope.integrations.verifiers",
        description="Follow an output folder of verifiers or prime-rl; Ctrl-C ends it.",
    )
    parser.add_argument("folder", type=Path, help="where rollouts or traces are")
    parser.add_argument("--run", help="the run's name (default: that of the folder)")
    parser.add_argument("--dir", type=Path, default=Path("runs"), help="where runs are (runs)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between looks (1)")
    options = parser.parse_args(argv)
    run = options.dir / (options.run or options.folder.resolve().name)
    sys.stderr.write(f"following {options.folder}; see it with: rollscope view {run}\n")
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        count = follow(options.folder, run, options.every, stop)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.stderr.write(f"{count} records\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
