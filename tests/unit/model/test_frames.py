from __future__ import annotations

import pytest

from rollscope.errors import FrameError
from rollscope.model.frames import HEADER_BYTES, MARKER, MAX_BODY_BYTES, pack_frame, scan_frames

A, B, C = (pack_frame(body) for body in (b"first", b"", b"third" * 100))


def test_a_frame_is_marker_length_checksum_and_body() -> None:
    assert pack_frame(b"123456789") == b"RSF1" + b"\x09\0\0\0" + b"\x26\x39\xf4\xcb" + b"123456789"


def test_whole_frames_are_found_in_order() -> None:
    scan = scan_frames(A + B + C)
    assert scan.bodies == [b"first", b"", b"third" * 100]
    assert (scan.end, scan.damaged) == (len(A + B + C), 0)


def test_a_memoryview_is_read_too() -> None:
    assert scan_frames(memoryview(A)).bodies == [b"first"]


def test_nothing_holds_nothing() -> None:
    assert scan_frames(b"") == ([], 0, 0)
    assert scan_frames(b"", final=True) == ([], 0, 0)


def test_an_incomplete_frame_is_left_for_later() -> None:
    for cut in range(1, len(C)):
        scan = scan_frames(A + C[:cut])
        assert scan.bodies == [b"first"]
        assert (scan.end, scan.damaged) == (len(A), 0)


def test_an_incomplete_frame_is_damage_once_nothing_will_follow() -> None:
    for cut in range(1, len(C)):
        scan = scan_frames(A + C[:cut], final=True)
        assert scan.bodies == [b"first"]
        assert (scan.end, scan.damaged) == (len(A) + cut, cut)


def test_bytes_that_are_no_frame_are_stepped_over_and_counted() -> None:
    scan = scan_frames(b"??" + A + b"!!!" + C)
    assert scan.bodies == [b"first", b"third" * 100]
    assert (scan.end, scan.damaged) == (len(A + C) + 5, 5)


def test_a_frame_with_a_wrong_checksum_is_stepped_over() -> None:
    broken = bytearray(C)
    broken[-1] ^= 1
    scan = scan_frames(A + broken + A)
    assert scan.bodies == [b"first", b"first"]
    assert scan.damaged == len(C)


def test_a_frame_with_a_length_beyond_all_reason_does_not_hide_the_next_one() -> None:
    scan = scan_frames(MARKER + b"\xff\xff\xff\xff" + b"\0\0\0\0" + A)
    assert scan.bodies == [b"first"]
    assert scan.damaged == HEADER_BYTES


def test_a_frame_whose_length_was_raised_by_damage_is_found_out_at_the_end() -> None:
    broken = bytearray(A + C)
    broken[5] ^= 1  # 256 bytes longer, which reaches into the next frame
    assert scan_frames(bytes(broken[: len(A)]) + B).bodies == []
    assert scan_frames(bytes(broken), final=True).bodies == [b"third" * 100]


def test_a_frame_inside_the_body_of_another_is_not_a_frame_of_its_own() -> None:
    scan = scan_frames(pack_frame(A + B) + C)
    assert scan.bodies == [A + B, b"third" * 100]


def test_a_torn_frame_that_carries_frames_as_text_waits_for_its_end() -> None:
    torn = pack_frame(A + b"x" * 100)[:-1]
    assert scan_frames(torn) == ([], 0, 0)


def test_the_beginning_of_a_marker_at_the_end_is_kept_for_later() -> None:
    for keep in range(1, len(MARKER)):
        scan = scan_frames(A + b"noise" + MARKER[:keep])
        assert scan.end == len(A) + 5
        assert scan_frames(MARKER[:keep] + A[keep:]).bodies == [b"first"]


def test_a_body_may_have_the_largest_size_and_not_a_byte_more() -> None:
    largest = b"\0" * MAX_BODY_BYTES
    assert scan_frames(pack_frame(largest)).bodies == [largest]
    with pytest.raises(FrameError, match=str(MAX_BODY_BYTES + 1)):
        pack_frame(largest + b"\0")
