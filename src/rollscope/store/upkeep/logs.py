"""The logs of a run: sealing all that they hold, and dropping those that nobody needs then."""

import time
from pathlib import Path
from typing import Final

from rollscope.errors import StoreError
from rollscope.model.frames import scan_frames
from rollscope.model.rundir import LOG_DIR
from rollscope.store.followedlog import LogState
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.sealer import Progress, Sealer
from rollscope.store.segments import is_sound
from rollscope.store.upkeep import TRIES

__all__ = ["drop_logs", "finished_logs", "seal_all"]

_SURELY_OVER_NS: Final = 3_600_000_000_000
"""How long a process that did not close its log has to be silent before its log is dropped: one
that was only stopped, or cut off from the file system, may write again."""


def seal_all(sealer: Sealer, progress: Progress | None = None) -> None:
    """Take in the logs and seal all that is final.

    Raises:
        StoreError: Segments cannot be written.
    """
    if sealer.shelf is None:
        raise StoreError(
            f"neither {sealer.run} nor your cache directory can be written to, so nothing can be "
            "sealed; set XDG_CACHE_HOME to a directory of yours"
        )
    for _ in range(TRIES):
        sealer.poll(progress)
        # Heart-beats and ends make no rows, but belong to what is known of the logs.
        is_tail_empty = not any(sealer.tail.values())
        if is_tail_empty and sealer.intake.to_state() == sealer.sealed_state():
            return
        if not sealer.seal():
            raise StoreError("; ".join(sealer.problems) or "segments cannot be written")
    # A sealer that reads its run anew must not publish anything before that is sealed.
    if sealer.shelf.load().manifest.segments != sealer.manifest.segments:
        raise StoreError("other readers keep sealing the run; nothing was changed, try again")


def finished_logs(sealer: Sealer, now_ns: int | None = None) -> list[Path]:
    """Give the logs that hold nothing but what is sealed, of processes that are over."""
    now = time.time_ns() if now_ns is None else now_ns
    state = sealer.sealed_state()
    ledgers = {ledger.process: ledger for ledger in state.ledgers}
    folder = sealer.run / LOG_DIR
    return [
        folder / name
        for name, log in sorted(state.logs.items())
        if _is_finished(folder / name, log, ledgers.get(log.process or b""), now)
    ]


def _is_finished(path: Path, log: LogState, ledger: LedgerState | None, now_ns: int) -> bool:
    if ledger is None or log.problems or log.damaged_bytes:
        return False  # what could not be read may be worth another look
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    if ledger.end is not None:
        return status.st_size == log.offset
    # A frame that was never finished may follow what is sealed; a dead process left it.
    is_silent = now_ns - max(ledger.last_seen_ns, status.st_mtime_ns) > _SURELY_OVER_NS
    return is_silent and not _has_frames(path, log.offset)


def _has_frames(path: Path, offset: int) -> bool:
    with path.open("rb") as file:
        file.seek(offset)
        return bool(scan_frames(file.read(), final=True).bodies)


def drop_logs(sealer: Sealer, now_ns: int | None = None) -> list[Path]:
    """Delete the logs that `finished_logs` names; what is in them stays in the segments.

    How far they were read stays in the state, so that a damaged segment is not taken for one that
    the logs could bring back.

    Raises:
        StoreError: Segments are damaged, so the logs are still needed.
    """
    logs = finished_logs(sealer, now_ns)
    folder = sealer.shelf.folder if sealer.shelf is not None else sealer.run
    for segment in sealer.manifest.segments if logs else ():
        if not is_sound(folder, segment, deep=True):
            raise StoreError(
                f"the segment {segment.file} is damaged, so the logs are still needed; run "
                "`rollscope compact` without --drop-logs first, which reads them again"
            )
    for path in logs:
        path.unlink(missing_ok=True)
    return logs
