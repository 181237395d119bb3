"""What processes append to their logs from now on, read beside the store.

The store takes everything in and answers in turn, which can take most of a second while thousands
of spans are open. Who waits for one record of a process looks at the ends of the files instead.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from rollscope.errors import FrameError
from rollscope.model.batch import Batch, decode_batch
from rollscope.model.frames import scan_frames
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX

__all__ = ["LogGrowth"]


class LogGrowth:
    """Reads the logs of some processes on from where they end when this is made."""

    def __init__(self, run: Path, processes: Iterable[int]) -> None:
        self._offsets: dict[Path, int] = {}
        for process in processes:
            ending = process.to_bytes(8, "big").hex()[-8:]
            for path in (run / LOG_DIR).glob(f"*-{ending}{LOG_SUFFIX}"):
                with suppress(OSError):
                    self._offsets[path] = path.stat().st_size

    def poll(self) -> Iterator[Batch]:
        """Give what has come since the last call; frames that make no sense are left out."""
        for path, offset in self._offsets.items():
            try:
                if path.stat().st_size <= offset:
                    continue
                with path.open("rb") as file:
                    file.seek(offset)
                    found = scan_frames(file.read())
            except OSError:  # deleted meanwhile
                continue
            self._offsets[path] = offset + found.end
            for body in found.bodies:
                with suppress(FrameError):
                    yield decode_batch(body)
