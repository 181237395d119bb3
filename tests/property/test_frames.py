from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollscope.model.frames import MARKER, pack_frame, scan_frames

# Bodies that look like frames themselves are the hard case.
bodies = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=20).map(pack_frame),
        st.just(MARKER),
        st.binary(max_size=9).map(lambda rest: MARKER + rest),
    ),
    max_size=6,
)
noise = st.binary(max_size=40).filter(lambda data: not set(data) & set(MARKER))


@given(bodies)
def test_frames_read_back_as_they_were_packed(bodies: list[bytes]) -> None:
    data = b"".join(map(pack_frame, bodies))
    for final in (False, True):
        assert scan_frames(data, final=final) == (bodies, len(data), 0)


@given(bodies, st.integers(min_value=0))
def test_a_cut_anywhere_costs_only_the_frame_it_hits(bodies: list[bytes], cut: int) -> None:
    frames = [pack_frame(body) for body in bodies]
    data = b"".join(frames)
    cut %= len(data) + 1
    whole, length = 0, 0
    while whole < len(frames) and length + len(frames[whole]) <= cut:
        length += len(frames[whole])
        whole += 1
    scan = scan_frames(data[:cut])
    assert scan == (bodies[:whole], length, 0)


@given(bodies, st.lists(st.integers(min_value=1, max_value=50), min_size=1))
def test_reading_piece_by_piece_gives_the_same_as_reading_at_once(
    bodies: list[bytes], sizes: list[int]
) -> None:
    data = b"".join(map(pack_frame, bodies))
    found: list[bytes] = []
    rest, at, turn = b"", 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        scan = scan_frames(rest + data[at : at + size])
        found += scan.bodies
        rest = (rest + data[at : at + size])[scan.end :]
        at, turn = at + size, turn + 1
        assert scan.damaged == 0
    assert found == bodies
    assert rest == b""


@given(bodies, st.lists(noise, min_size=7, max_size=7))
def test_noise_between_frames_is_counted_and_hides_none(
    bodies: list[bytes], noises: list[bytes]
) -> None:
    data = noises[0]
    for body, after in zip(bodies, noises[1:], strict=False):
        data += pack_frame(body) + after
    scan = scan_frames(data, final=True)
    assert scan.bodies == bodies
    assert scan.damaged == len(data) - sum(len(pack_frame(body)) for body in bodies)
    assert scan.end == len(data)


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(min_value=0), st.integers(1, 255)), min_size=1, max_size=8),
)
def test_flipped_bits_never_yield_a_body_that_was_not_written(
    bodies: list[bytes], flips: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(map(pack_frame, bodies)))
    for at, flip in flips:
        data[at % len(data)] ^= flip
    for final in (False, True):
        scan = scan_frames(bytes(data), final=final)
        assert 0 <= scan.end <= len(data)
        remaining = iter(bodies)
        assert all(body in remaining for body in scan.bodies)  # in order, and none made up


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_at_all_are_scanned_to_an_end(data: bytes, final: bool) -> None:
    scan = scan_frames(data, final=final)
    assert 0 <= scan.end <= len(data)
    assert not final or scan.end == len(data)
    read = sum(len(pack_frame(body)) for body in scan.bodies)
    assert read + scan.damaged == scan.end
