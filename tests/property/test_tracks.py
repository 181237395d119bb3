"""Whatever runs at once, tracks nest, and every span lies on one of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollscope.exporting.tracks import NEVER_NS, Group, Spread

_LENGTHS = st.one_of(st.integers(0, 30), st.just(NEVER_NS))


@st.composite
def _spans(draw: st.DrawFn) -> list[Spread]:
    """Give spans of one session in the order in which they are placed."""
    spans = []
    for number in range(draw(st.integers(0, 25))):
        start, length = draw(st.integers(0, 40)), draw(_LENGTHS)
        end = NEVER_NS if length == NEVER_NS else start + length
        parent = draw(st.none() | st.integers(1, number)) if number else None
        spans.append(Spread(start, end, number + 1, parent, draw(st.sampled_from([None, 1]))))
    return sorted(spans, key=lambda span: (span.start_ns, -span.end_ns, span.span_id))


def _place(spans: list[Spread], *, nests_freely: bool) -> list[list[Spread]]:
    group = Group(nests_freely=nests_freely)
    tracks: dict[int, list[Spread]] = {}
    for span in spans:
        tracks.setdefault(group.place(span), []).append(span)
    assert sorted(tracks) == list(range(len(tracks)))
    return list(tracks.values())


@given(_spans(), st.booleans())
def test_no_two_spans_of_a_track_overlap_without_nesting(
    spans: list[Spread], nests_freely: bool
) -> None:
    tracks = _place(spans, nests_freely=nests_freely)
    assert sorted(span for track in tracks for span in track) == sorted(spans)
    for track in tracks:
        for at, first in enumerate(track):
            for second in track[at + 1 :]:
                assert first.end_ns <= second.start_ns or second.end_ns <= first.end_ns


@given(_spans())
def test_a_span_lies_inside_its_ancestors_only(spans: list[Spread]) -> None:
    by_id = {span.span_id: span for span in spans}

    def ancestors(span: Spread) -> set[int]:
        found: set[int] = set()
        waiting = [span.parent_id, span.session_id]
        while waiting:
            one = waiting.pop()
            if one is not None and one in by_id and one not in found:
                found.add(one)
                waiting += [by_id[one].parent_id, by_id[one].session_id]
        return found

    for track in _place(spans, nests_freely=False):
        for at, first in enumerate(track):
            for second in track[at + 1 :]:
                if second.start_ns < first.end_ns:
                    assert first.span_id in ancestors(second)
