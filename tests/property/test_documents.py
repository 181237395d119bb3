"""Documents read as streams: every element once, whatever the pieces that the text comes in."""

import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.documents import Outline, read_elements

_LEAF = st.none() | st.booleans() | st.integers() | st.text('{}[],:"\\ aä\n', max_size=8)
_VALUE = st.recursive(
    _LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
_SIZES = st.integers(20, 300)
_EVENTS = st.lists(st.dictionaries(st.text(max_size=3), _VALUE), max_size=12)


class _Drops(io.StringIO):
    """Text that comes in small pieces."""

    size = 1

    def read(self, _: int | None = -1, /) -> str:
        return super().read(self.size)


def _read(text: str, size: int) -> tuple[list[Any], list[str], Outline]:
    outline: Outline = {}
    pieces = _Drops(text)
    pieces.size = size
    elements = list(read_elements(pieces, "rows", outline))
    read = [json.loads(one.raw) for one in elements if not one.trouble]
    return read, [one.trouble for one in elements if one.trouble], outline


@settings(max_examples=50)
@given(_EVENTS, st.dictionaries(st.text(max_size=3), _VALUE), _SIZES, st.booleans())
def test_elements_and_what_stands_around_them_are_read(
    events: list[Any], around: dict[str, Any], size: int, is_late: bool
) -> None:
    members = {**around, "rows": events} if is_late else {"rows": events, **around}
    assert _read(json.dumps(members), size) == (events, [], around)
    assert _read(json.dumps(members, indent=1), size) == (events, [], around)
    assert _read(json.dumps(events), size) == (events, [], {})


@given(st.lists(st.dictionaries(st.text(max_size=3), _LEAF, min_size=1), min_size=1, max_size=8),
       _SIZES, st.integers(1, 10_000))  # fmt: skip
def test_an_array_that_was_cut_off_gives_what_is_whole(
    events: list[Any], size: int, cut: int
) -> None:
    text = json.dumps(events)
    text = text[: 1 + cut % (len(text) - 1)]
    read, troubles, _ = _read(text, size)
    assert read == events[: len(read)]
    assert len(read) >= text.count("}, {") or any("}, {" in json.dumps(one) for one in events)
    assert set(troubles) <= {"torn", "bad: no JSON object"}


@settings(max_examples=25)
@given(_EVENTS, _EVENTS.filter(bool), _SIZES)
def test_one_bad_element_costs_nothing_but_itself(
    before: list[Any], after: list[Any], size: int
) -> None:
    bad = '{"a": tru}' + " " * 2000
    parts = [*map(json.dumps, before), bad, *map(json.dumps, after)]
    read, troubles, outline = _read('{"rows": [' + ",\n".join(parts) + '], "z": 1}', size)
    assert (read, troubles, outline) == (before + after, ["bad: no JSON object"], {"z": 1})
