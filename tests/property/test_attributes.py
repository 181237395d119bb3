from __future__ import annotations

import math
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import rollscope as rs
from rollscope.instrument.sanitise import clean_attrs
from rollscope.instrument.snapshot import snapshot_payload
from rollscope.model.batch import decode_batch, encode_batch
from rollscope.model.records import SpanRecord
from tests.builders import make_batch, make_columns, make_row, records_of
from tests.hostile import Hostile, Proxy

plain_text = st.text(st.characters(codec="utf-8"), max_size=200)
plain_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    plain_text,
)
# Within what is kept whole: three levels, eight items each, and texts that fit into their share.
plain_values = st.recursive(
    st.one_of(plain_scalars, st.text(st.characters(codec="utf-8"), max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=4),
    ),
    max_leaves=6,
).filter(lambda value: _depth(value) <= 3 and _longest(value) <= 16)
weird_values = st.recursive(
    st.one_of(
        plain_scalars,
        st.floats(),
        st.text(max_size=50),
        st.binary(max_size=50),
        st.integers(),
        st.complex_numbers(),
        st.sampled_from([Hostile, Proxy, object, threading.Lock, Ellipsis, rs, len]),
        st.builds(Hostile),
        st.builds(bytearray, st.binary(max_size=5)),
        st.dates(),
        st.uuids(),
        st.decimals(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.integers(), st.none()), inner, max_size=5
        ),
    ),
    max_leaves=20,
)
keys = st.text(st.characters(codec="utf-8"), max_size=20)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _longest(value: object) -> int:
    """Give the bytes of the longest text inside a list or map."""
    if isinstance(value, dict):
        return max((max(_longest(v), _size(v)) for v in value.values()), default=0)
    if isinstance(value, list):
        return max((max(_longest(v), _size(v)) for v in value), default=0)
    return 0


def _size(value: object) -> int:
    return len(value.encode()) if isinstance(value, str) else 0


def read_back(*attrs: dict[Any, Any]) -> list[dict[str, Any]]:
    """Record attributes as spans, encode, decode and read them."""
    rows = [make_row(number, attrs=given) for number, given in enumerate(attrs, start=1)]
    batch = decode_batch(encode_batch(make_batch(spans=make_columns(*rows))))
    records = records_of(batch)
    return [record.attrs for record in records if isinstance(record, SpanRecord)]


@given(st.lists(st.dictionaries(keys, plain_values, max_size=4), min_size=1, max_size=4))
def test_plain_attributes_read_back_equal(attrs: list[dict[str, Any]]) -> None:
    assert read_back(*attrs) == attrs


@given(
    st.dictionaries(keys, plain_values, max_size=4),
    st.dictionaries(st.text(max_size=20), weird_values, max_size=4),
)
def test_weird_attributes_never_raise_and_never_harm_plain_ones(
    plain: dict[str, Any], weird: dict[str, Any]
) -> None:
    first, odd, last = read_back(plain, weird, plain)
    assert first == last == plain
    assert len(odd) == len(weird) or any(not key.isprintable() for key in weird)


@given(st.dictionaries(st.text(max_size=300), weird_values, max_size=4), st.integers(64, 500))
def test_cleaned_attributes_are_clean(attrs: dict[str, Any], limit: int) -> None:
    once = clean_attrs(attrs, limit)
    for key, value in once.items():
        assert len(key.encode()) <= limit
        if isinstance(value, str):
            assert len(value.encode()) <= limit
        assert value is None or type(value) in (bool, int, float, str, list, dict)


@given(weird_values, st.integers(64, 2000))
def test_any_payload_becomes_text_within_its_limit(value: Any, limit: int) -> None:
    text, cut = snapshot_payload(value, limit)
    assert len(text.encode()) <= limit
    assert cut or text


@given(st.one_of(plain_values, st.lists(plain_scalars, max_size=100)))
def test_plain_payloads_read_back_equal(value: Any) -> None:
    import json

    text, cut = snapshot_payload(value, 1_000_000)
    assert not cut
    assert _same(json.loads(text), value)


def _same(read: Any, given: Any) -> bool:
    """Compare, infinity being null in JSON."""
    if isinstance(given, list):
        return len(read) == len(given) and all(map(_same, read, given))
    if isinstance(given, dict):
        return read.keys() == given.keys() and all(_same(read[k], given[k]) for k in given)
    if isinstance(given, float) and math.isinf(given):
        return read is None
    return bool(read == given)
