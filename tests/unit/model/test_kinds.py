from __future__ import annotations

from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    STATUS_OF_CODE,
    WHAT_OF_CODE,
    Category,
    Kind,
    MetricType,
    Outcome,
    Status,
)

# What stands in files for good. A line may be added here; none may change.
GOLDEN_WHAT = {
    0: (None, None),
    1: ("step", None),
    2: ("task", None),
    3: ("session", None),
    4: ("phase", None),
    5: ("state", None),
    16: ("span", "compute"),
    17: ("span", "comm"),
    18: ("span", "io"),
    19: ("span", "sync"),
    20: ("span", "scheduler"),
    21: ("span", "instr"),
    22: ("span", "misc"),
}
GOLDEN_STATUS = {0: "open", 1: "ok", 2: "error", 3: "cancelled", 4: "lost"}


def test_codes_of_kinds_and_categories_are_frozen() -> None:
    assert {code: tuple(what) for code, what in WHAT_OF_CODE.items()} == GOLDEN_WHAT


def test_codes_of_statuses_are_frozen() -> None:
    assert dict(enumerate(STATUS_OF_CODE)) == GOLDEN_STATUS
    assert {code: status for status, code in STATUS_CODES.items()} == GOLDEN_STATUS


def test_words_in_files_are_frozen() -> None:
    assert set(Outcome) == {"accepted", "rejected", "failed", "timeout", "dropped", "cancelled"}
    assert set(MetricType) == {"counter", "gauge", "histogram"}


def test_every_kind_and_category_has_a_code_that_leads_back_to_it() -> None:
    assert WHAT_OF_CODE[EVENT_CODE].kind is None
    assert set(KIND_CODES) == set(Kind) - {Kind.SPAN}
    for kind, code in KIND_CODES.items():
        assert WHAT_OF_CODE[code] == (kind, None)
    assert set(SPAN_CODES) == set(Category)
    for category, code in SPAN_CODES.items():
        assert WHAT_OF_CODE[code] == (Kind.SPAN, category)
    for status in Status:
        assert STATUS_OF_CODE[STATUS_CODES[status]] is status
