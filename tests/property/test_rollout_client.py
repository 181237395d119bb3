"""What holds for every limit and for every way to cut a stream."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.rollout.client.events import EventReader
from rollscope.rollout.client.limits import DEFAULT_TOKENS, token_limit

_LIMITS = st.none() | st.integers(1, 10_000)


@given(
    prompt=st.integers(0, 10_000),
    wanted=_LIMITS,
    total=_LIMITS,
    engine=_LIMITS,
    alias=st.booleans(),
)
def test_an_answer_never_breaks_a_limit_and_uses_all_that_is_allowed(
    prompt: int, wanted: int | None, total: int | None, engine: int | None, alias: bool
) -> None:
    name = "max_tokens" if alias else "max_completion_tokens"
    limits = {name: wanted, "max_total_tokens": total, "engine_max_tokens": engine}
    totals = [limit for limit in (total, engine) if limit is not None]
    if any(prompt >= limit for limit in totals):
        with pytest.raises(ValueError, match="exceeds max_total_tokens"):
            token_limit(prompt, **limits)
        return
    tokens, is_default = token_limit(prompt, **limits)

    def is_allowed(count: int) -> bool:
        return (wanted is None or count <= wanted) and all(prompt + count <= t for t in totals)

    assert tokens > 0
    if is_default:
        assert (tokens, wanted, totals) == (DEFAULT_TOKENS, None, [])
    else:
        assert is_allowed(tokens)
        assert not is_allowed(tokens + 1)


@settings(max_examples=100)
@given(
    texts=st.lists(st.text(max_size=12), max_size=6),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    is_closed=st.booleans(),
)
def test_a_stream_reads_the_same_however_it_is_cut(
    texts: list[str], newline: bytes, cuts: list[int], is_closed: bool
) -> None:
    events = [json.dumps({"text": text}, ensure_ascii=False).encode() for text in texts]
    stream = b": hello" + newline * 2
    stream += (newline * 2).join(b"data: " + event for event in events)
    if is_closed:
        stream += newline * 2
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    reader = EventReader()
    read = [
        event for start, end in itertools.pairwise(ends) for event in reader.feed(stream[start:end])
    ]
    assert [*read, *reader.finish()] == events
    assert reader.held_bytes == 0
