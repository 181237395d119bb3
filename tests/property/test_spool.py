"""A spool under any order of writing, taking, dying and inheriting: nothing is lost."""

from __future__ import annotations

import os
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.model.frames import pack_frame, scan_frames

_TO = Destination("http://head:7077", "run", "00" * 8, "node", 1)
_SEGMENT_BYTES = 4096

writes = st.tuples(st.just("write"), st.integers(0, 6000))
takes = st.tuples(st.sampled_from(["take", "look", "die"]), st.just(0))
cuts = st.binary(max_size=40)


class _Story:
    """A process, or whoever inherits from it, and the collector that takes its frames."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.spool = Spool.make(path, _TO, _SEGMENT_BYTES)
        self.is_alive = True
        self.written: list[bytes] = []
        self.taken: list[bytes] = []

    def write(self, size: int) -> None:
        if self.is_alive:
            body = b"%06d" % len(self.written) + b"R" * size
            self.spool.write(pack_frame(body))
            self.written.append(body)

    def take(self) -> bool:
        data = self.spool.peek(8192)
        if data:
            self.taken += scan_frames(data).bodies
            self.spool.take()
        return bool(data)

    def die(self, torn: bytes) -> None:
        self.spool.let_go()
        segments = sorted(name for name in os.listdir(self.path) if name.endswith(".rsl"))
        if self.is_alive and segments:
            with open(os.path.join(self.path, segments[-1]), "ab") as file:
                file.write(torn)
        self.is_alive = False
        heir = Spool.claim(self.path)
        assert heir is not None
        self.spool = heir


@given(st.lists(writes | takes, max_size=40), cuts)
@settings(deadline=None, max_examples=75)
def test_every_frame_is_taken_once_and_in_order(steps: list[tuple[str, int]], torn: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = _Story(os.path.join(folder, "spool"))
        for action, size in steps:
            if action == "write":
                story.write(size)
            elif action == "take":
                story.take()
            elif action == "look":
                story.spool.peek(8192)
            else:
                story.die(torn)
        while story.take():
            pass
        assert story.spool.waiting_bytes == 0
        story.spool.release()
        assert story.taken == story.written
        assert os.listdir(folder) == []
