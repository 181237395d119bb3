"""Short names of sessions."""

import numpy as np

from rollscope.reports.shortids import ShortIds

FAR, NEAR, TWIN, OTHER_TWIN = 0xABCD_0000_1234_5678, 0x9999, 0x1_0000_00AA, 0x2_0000_00AA


def test_a_session_is_named_by_its_last_four_bytes_where_that_is_its_alone() -> None:
    names = ShortIds([FAR, NEAR, TWIN, OTHER_TWIN])
    assert names.name(FAR) == "0000000012345678"
    assert names.whole("0000000012345678") == f"{FAR:016x}"
    assert [names.name(one) for one in (TWIN, OTHER_TWIN)] == [
        "00000001000000aa",
        "00000002000000aa",
    ]


def test_answers_and_frames_name_sessions_the_same_way() -> None:
    names = ShortIds([FAR, TWIN, OTHER_TWIN])
    answer = {"sessions": [f"{FAR:016x}"], "row": {"span_id": f"{TWIN:016x}", "host": "h"}}
    assert names.rename(answer) == {
        "sessions": ["0000000012345678"],
        "row": {"span_id": "00000001000000aa", "host": "h"},
    }
    halves = np.array([FAR, TWIN], np.uint64).view(np.uint32)
    renamed = names.rename_halves(halves).view(np.uint64).tolist()
    assert [f"{one:016x}" for one in renamed] == [names.name(FAR), names.name(TWIN)]


def test_whole_ids_stay_when_they_are_wanted() -> None:
    names = ShortIds([FAR], is_whole=True)
    assert names.name(FAR) == f"{FAR:016x}"
    assert names.rename([f"{FAR:016x}"]) == [f"{FAR:016x}"]
