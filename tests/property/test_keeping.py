"""However frames are sent, doubled, cut into requests and received by whom, each is kept once."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.collect.keeping import Keeper
from rollscope.errors import FramesRefused
from rollscope.store.batches import BatchFollower
from tests.builders import PROCESS, frame_of, make_batch, make_header, make_row, span_batch

FRAMES = [
    frame_of(make_batch(0, header=make_header(host="far", pid=1))),
    *(frame_of(span_batch(number, make_row(number))) for number in range(1, 8)),
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=5), min_size=1, max_size=8),
    st.sets(st.integers(0, 8)),
    st.integers(1, 60),
)
def test_every_frame_is_kept_exactly_once(
    requests: list[list[int]], restarts: set[int], torn: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        keeper = Keeper(Path(place))
        for at, request in enumerate(requests):
            keeper.keep("run", {}, PROCESS, b"".join(FRAMES[number] for number in request))
            if at in restarts:  # the one before was killed amid a write
                keeper.close()
                (log,) = Path(place, "run", "log").iterdir()
                with log.open("ab") as file:
                    file.write(FRAMES[1][:torn])
                keeper = Keeper(Path(place))
        keeper.keep("run", {}, PROCESS, FRAMES[0])
        keeper.close()
        (log,) = Path(place, "run", "log").iterdir()
        follower = BatchFollower(log)
        numbers = [batch.number for batch in follower.poll()]
        assert sorted(numbers) == sorted({0, *(n for request in requests for n in request)})
        assert (follower.damaged_bytes, follower.waiting_bytes) == (0, 0)


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 60))
def test_bytes_that_are_no_frames_are_refused_and_nothing_else(
    noise: bytes, at: int, length: int
) -> None:
    good = FRAMES[0] + FRAMES[1]
    data = good[:at] + noise + good[at + length :]
    with tempfile.TemporaryDirectory() as place:
        keeper = Keeper(Path(place))
        try:
            keeper.keep("run", {}, PROCESS, data)
        except FramesRefused:
            assert not list(Path(place).iterdir())
        else:
            assert data in (good, FRAMES[0], FRAMES[1], b"")
        keeper.close()
