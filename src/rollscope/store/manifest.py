"""Manifests: which segments make up a run, and how far its logs have been taken in.

Several readers may seal the same run at once, also on a shared file system, so nothing is ever
changed in place. A reader writes new files under names nobody else uses and then a manifest with
the next number. Whoever makes the link of that name first has won; the other throws its files away
and goes on from the winner's manifest.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import UnknownSchema
from rollscope.model.undecodable import UNDECODABLE
from rollscope.store.clocklinks import ClockLinks
from rollscope.store.clocks import ClockBounds
from rollscope.store.intake import IntakeState
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.segments import SEGMENT_SUFFIX, Segment

__all__ = ["Loaded", "Manifest", "Shelf", "index_name"]

_PREFIX: Final = "manifest-"
_SUFFIX: Final = ".json"
_STATE_SUFFIX: Final = ".state"
_DAMAGED_SUFFIX: Final = ".damaged"
_INDEX_SUFFIX: Final = ".index"
_KEPT_MANIFESTS: Final = 4
_GRACE_S: Final = 600.0
"""How long files stay after no manifest names them, for readers that still use an older one."""

_state_decoder = msgspec.msgpack.Decoder(IntakeState)


class Manifest(msgspec.Struct, kw_only=True):
    """One published state of a run's segments."""

    number: int
    schema: int = SEGMENT_SCHEMA
    made_ns: int = 0
    segments: list[Segment] = []
    state: str = ""
    """The file that says how far the logs have been taken in."""
    removed_rows: int = 0
    """Spans that retention has removed so far."""
    clock_bounds: ClockBounds = {}
    clock_links: ClockLinks = {}


class Loaded(msgspec.Struct):
    """A manifest with its state, and what was wrong on the way to it."""

    manifest: Manifest
    state: IntakeState
    problems: list[str] = []


def index_name(what: str, segments: Sequence[Segment]) -> str:
    """Name a file that is made from segments, and of use with exactly these."""
    files = "\n".join(segment.file for segment in segments)
    return f"{what}-{hashlib.sha256(files.encode()).hexdigest()[:16]}{_INDEX_SUFFIX}"


class Shelf:
    """The folder that holds segments, manifests and states."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        """Give the numbers of the manifests there are, the newest first."""
        names = (path.name for path in self.folder.glob(f"{_PREFIX}*{_SUFFIX}"))
        digits = (name[len(_PREFIX) : -len(_SUFFIX)] for name in names)
        return sorted((int(number) for number in digits if number.isdigit()), reverse=True)

    def newest(self) -> int:
        """Give the number of the newest manifest; 0 if there is none."""
        return max(self.numbers(), default=0)

    def load(self) -> Loaded:
        """Read the newest manifest that can be read; an empty one if there is none.

        Raises:
            UnknownSchema: A newer version of Rollscope has sealed this run.
        """
        problems: list[str] = []
        numbers = self.numbers()
        for number in numbers:
            path = self._manifest_path(number)
            try:
                manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
                _check_schema(manifest, path)
                state = _state_decoder.decode((self.folder / manifest.state).read_bytes())
            except (OSError, *UNDECODABLE) as error:
                problems.append(f"{path} cannot be used ({error}); the one before it is")
                continue
            # The next manifest comes after the newest there is, readable or not.
            manifest.number = numbers[0]
            return Loaded(manifest, state, problems)
        return Loaded(Manifest(number=max(numbers, default=0)), IntakeState(), problems)

    def publish(self, manifest: Manifest, state: IntakeState | bytes) -> bool:
        """Make a manifest the newest; False if another reader was faster.

        Args:
            manifest: The manifest, with the next number.
            state: How far the logs have been taken in; encoded, or not yet.

        Raises:
            OSError: It cannot be written.
        """
        token = secrets.token_hex(8)
        manifest.state = f"{manifest.number:08d}-{token}{_STATE_SUFFIX}"
        manifest.made_ns = time.time_ns()
        draft = self.folder / f"{token}.tmp"
        try:
            encoded = state if isinstance(state, bytes) else msgspec.msgpack.encode(state)
            _write(self.folder / manifest.state, encoded)
            _write(draft, msgspec.json.encode(manifest))
            os.link(draft, self._manifest_path(manifest.number))
        except FileExistsError:
            (self.folder / manifest.state).unlink(missing_ok=True)
            return False
        except OSError:
            (self.folder / manifest.state).unlink(missing_ok=True)
            raise
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(self.folder)
        return True

    def _manifest_path(self, number: int) -> Path:
        return self.folder / f"{_PREFIX}{number:08d}{_SUFFIX}"

    def set_aside(self, segment: Segment) -> Path:
        """Rename a damaged segment, so that it is neither used nor lost."""
        path = self.folder / segment.file
        aside = path.with_name(path.name + _DAMAGED_SUFFIX)
        if path.exists():
            path.rename(aside)
        return aside

    def discard(self, segments: list[Segment]) -> None:
        """Delete files that were never published."""
        for segment in segments:
            (self.folder / segment.file).unlink(missing_ok=True)

    def discard_indexes(self, segments: Sequence[Segment], *, older_than_s: float = 0.0) -> None:
        """Delete what was made from other segments than these.

        Args:
            segments: Those of the newest manifest.
            older_than_s: Leave alone what has been there for less.
        """
        ending = index_name("", segments)
        before = time.time() - older_than_s
        for path in self.folder.glob(f"*{_INDEX_SUFFIX}"):
            if not path.name.endswith(ending):
                _delete_if_older(path, before)

    def sweep(self) -> None:
        """Delete what no recent manifest names, after a time of grace."""
        numbers = self.numbers()
        used: set[str] = set()
        for number in numbers[:_KEPT_MANIFESTS]:
            try:
                manifest = msgspec.json.decode(
                    self._manifest_path(number).read_bytes(), type=Manifest
                )
            except (OSError, *UNDECODABLE):
                continue
            if number == numbers[0]:
                self.discard_indexes(manifest.segments, older_than_s=_GRACE_S)
            used |= {manifest.state, *(segment.file for segment in manifest.segments)}
        old = {self._manifest_path(number).name for number in numbers[_KEPT_MANIFESTS:]}
        before = time.time() - _GRACE_S
        for path in self.folder.iterdir():
            is_ours = path.suffix in (SEGMENT_SUFFIX, _STATE_SUFFIX, ".tmp") or path.name in old
            if is_ours and path.name not in used:
                _delete_if_older(path, before)


def _check_schema(manifest: Manifest, path: Path) -> None:
    if manifest.schema > SEGMENT_SCHEMA:
        raise UnknownSchema(
            f"{path} was written with segment schema {manifest.schema}, this version reads up to "
            f"{SEGMENT_SCHEMA}; upgrade rollscope to read it"
        )


def _delete_if_older(path: Path, before: float) -> None:
    try:
        if path.stat().st_mtime < before:
            path.unlink()
    except OSError:
        return  # another reader was faster


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Let the new names survive a power cut; not every file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
