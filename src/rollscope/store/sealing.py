"""One attempt to seal: rows become segments, and a manifest names them, or nothing happens."""

import threading
from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from rollscope.store.manifest import Manifest, Shelf
from rollscope.store.segments import Segment, write_segment

__all__ = ["Sealing"]


class Sealing:
    """Writes what it was given, in the caller's thread or in one of its own."""

    def __init__(
        self,
        shelf: Shelf,
        manifest: Manifest,
        tables: Mapping[str, Sequence[pa.Table]],
        state: bytes,
    ) -> None:
        """Take everything along, so that the caller can go on.

        Args:
            shelf: Where to.
            manifest: The next one, without the new segments.
            tables: The rows of each table.
            state: How far the logs have been taken in with these rows, encoded.
        """
        self.manifest = manifest
        self.error: OSError | None = None
        self.was_first = False
        self._shelf = shelf
        self._tables = {name: list(pieces) for name, pieces in tables.items() if pieces}
        self._state = state
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Write in the background; a reader that ends meanwhile leaves nothing that counts."""
        self._thread = threading.Thread(target=self.run, name="rollscope-sealing", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is."""
        if self._thread is not None:
            self._thread.join()

    def run(self) -> None:
        """Write segments and publish the manifest."""
        written: list[Segment] = []
        try:
            for name, pieces in self._tables.items():
                written.append(write_segment(self._shelf.folder, name, pieces))
            self.manifest = msgspec.structs.replace(
                self.manifest, segments=[*self.manifest.segments, *written]
            )
            self.was_first = self._shelf.publish(self.manifest, self._state)
        except OSError as error:
            self.error = error
        if not self.was_first:
            self._shelf.discard(written)
