from __future__ import annotations

import json
from typing import Any

import pytest

from rollscope.errors import FrameError
from rollscope.timeline import decode_frame
from tests.unit.timeline.golden_frames import GOLDEN, decoded, make_frames

KINDS = ("delta", "packed", "raw", "tile")


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_frames(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / "decoded.json").read_text())
    return content


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_the_golden_run_stay_as_they_are(
    kind: str, frames: dict[str, bytes], expected: dict[str, Any]
) -> None:
    assert decoded(frames[kind]) == expected[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_golden_files_hold_what_their_json_says(kind: str, expected: dict[str, Any]) -> None:
    assert decoded((GOLDEN / f"{kind}.rsv").read_bytes()) == expected[kind]


def test_a_packed_frame_holds_what_the_raw_one_holds(frames: dict[str, bytes]) -> None:
    raw, packed = decoded(frames["raw"]), decoded(frames["packed"])
    assert packed["columns"] == raw["columns"]
    assert len(frames["packed"]) < len(frames["raw"])


def test_columns_lie_at_multiples_of_eight(frames: dict[str, bytes]) -> None:
    for kind in ("delta", "raw", "tile"):
        length = int.from_bytes(frames[kind][4:8], "little")
        assert (8 + length) % 8 == 0
        assert all(c["offset"] % 8 == 0 for c in decode_frame(frames[kind]).header["columns"])


@pytest.mark.parametrize("damage", ["short", "magic", "header", "columns", "gzip"])
def test_damaged_frames_are_told(damage: str, frames: dict[str, bytes]) -> None:
    raw, packed = frames["raw"], frames["packed"]
    broken = {
        "short": raw[:5],
        "magic": b"RSVX" + raw[4:],
        "header": raw[:40],
        "columns": raw[:-400],
        "gzip": packed[:-30],
    }[damage]
    with pytest.raises(FrameError):
        decode_frame(broken)
