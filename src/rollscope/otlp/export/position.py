"""How far an export has got: what was taken by the other side, and nothing else.

A position is where the logs were read up to when everything before was taken, and the ids of the
spans that were taken since. In a file, the ids of each batch are added at the end as it is taken,
and the file is written anew when all is.
"""

import os
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.errors import CommandError
from rollscope.model.undecodable import UNDECODABLE
from rollscope.store.intake import IntakeState

__all__ = ["Position", "SeriesState"]

_MAGIC: Final = b"rollscope export position 1\n"
_LENGTH: Final = 8
_ID: Final = 8


class SeriesState(msgspec.Struct):
    """What one series of a metric has come to."""

    start_ns: int
    value: float = 0.0
    count: int = 0
    min: float | None = None
    max: float | None = None
    buckets: dict[int, int] = {}


class _Kept(msgspec.Struct, kw_only=True):
    run: str
    to: str
    intake: IntakeState | None = None
    lost: list[int] = []
    pending: list[int] = []
    series: list[tuple[str, SeriesState]] = []


_decoder = msgspec.msgpack.Decoder(_Kept)


class Position:
    """What has been taken of one run by one endpoint."""

    def __init__(self, run: str, to: str, path: Path | None = None) -> None:
        """Start where the file says, else at the beginning.

        Args:
            run: The run.
            to: The endpoint.
            path: Where the position is kept; None: nowhere.

        Raises:
            CommandError: The file is of another export, or none of ours.
        """
        self._path = path
        self._run, self._to = run, to
        self.intake: IntakeState | None = None
        """Where to read on in the logs; None: not everything that was there has been taken yet."""
        self.lost: set[int] = set()
        """Spans that were sent as lost, and are not sent again should they end after all."""
        self.pending: set[int] = set()
        """Open spans that were told of."""
        self.series: dict[str, SeriesState] = {}
        self._taken: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._noted = bytearray()
        """Ids of what was taken since the program began, as the file holds them."""
        if path is not None and path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        data = path.read_bytes()
        start = len(_MAGIC) + _LENGTH
        end = start + int.from_bytes(data[len(_MAGIC) : start])
        if not data.startswith(_MAGIC) or end > len(data):
            raise CommandError(f"{path} holds no position of an export; give --state another file")
        try:
            kept = _decoder.decode(data[start:end])
        except UNDECODABLE as error:
            raise CommandError(f"{path} cannot be read ({error}); give --state another") from None
        if (kept.run, kept.to) != (self._run, self._to):
            raise CommandError(
                f"{path} is the position of exporting {kept.run} to {kept.to}; give --state "
                "another file"
            )
        self.intake, self.series = kept.intake, dict(kept.series)
        self.lost, self.pending = set(kept.lost), set(kept.pending)
        whole = end + (len(data) - end) // _ID * _ID
        self._taken = np.sort(np.frombuffer(data[end:whole], "<u8"))
        if whole < len(data):
            self.save()  # without the torn end, which is of spans that are sent again

    def is_taken(self, span_id: int) -> bool:
        """Say whether a span was taken before this program began, or was sent as lost."""
        if span_id in self.lost and self.intake is not None:
            return True
        if not len(self._taken):
            return False
        at = int(np.searchsorted(self._taken, np.uint64(span_id)))
        return at < len(self._taken) and int(self._taken[at]) == span_id

    def note(self, span_ids: list[int]) -> None:
        """Remember that spans were taken."""
        if self._path is None or not span_ids:
            return
        if not self._path.exists():
            self.save()
        ids = np.array(span_ids, "<u8").tobytes()
        with self._path.open("ab") as file:
            file.write(ids)
        self._noted += ids

    def settle(self, intake: IntakeState) -> None:
        """Remember that everything up to a place in the logs was taken."""
        self.intake = intake
        self._taken = np.empty(0, np.uint64)
        self._noted.clear()
        self.save()

    def save(self) -> None:
        """Write the file anew, whole or not at all."""
        if self._path is None:
            return
        kept = _Kept(
            run=self._run,
            to=self._to,
            intake=self.intake,
            lost=sorted(self.lost),
            pending=sorted(self.pending),
            series=list(self.series.items()),
        )
        data = msgspec.msgpack.encode(kept)
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        with draft.open("wb") as file:
            file.write(_MAGIC + len(data).to_bytes(_LENGTH) + data)
            file.write(self._taken.tobytes() + self._noted)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
