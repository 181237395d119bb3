from __future__ import annotations

import pickle

import pytest

from rollscope.model.refs import (
    SpanRef,
    format_traceparent,
    parse_traceparent,
    span_hex,
    trace_hex,
)

REF = SpanRef(bytes(range(1, 17)), 0x00F067AA0BA902B7)
TEXT = "00-0102030405060708090a0b0c0d0e0f10-00f067aa0ba902b7-01"


def test_a_reference_is_written_as_w3c_traceparent() -> None:
    assert format_traceparent(REF) == TEXT
    assert str(REF) == TEXT


def test_a_reference_survives_text_and_pickle() -> None:
    assert parse_traceparent(str(REF)) == REF
    assert pickle.loads(pickle.dumps(REF)) == REF  # noqa: S301  (our own bytes)


def test_ids_keep_their_leading_zeros_as_text() -> None:
    assert span_hex(1) == "0000000000000001"
    assert span_hex(2**64 - 1) == "ffffffffffffffff"
    assert trace_hex(b"\x00" * 15 + b"\x01") == "0" * 31 + "1"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.upper(),
        f"  {TEXT}\r\n",
        TEXT[:-2] + "00",
        "cc" + TEXT[2:],
        "cc" + TEXT[2:] + "-what-the-future-will-be-like",
    ],
    ids=["upper case", "padding", "not sampled", "newer version", "newer version with more"],
)
def test_valid_headers_of_other_clients_are_read(text: str) -> None:
    assert parse_traceparent(text) == REF


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "\0",
        "00",
        TEXT[:-1],
        TEXT + "0",
        TEXT + "-more",
        TEXT + "-",
        "ff" + TEXT[2:],
        TEXT.replace("-", "_"),
        TEXT.replace("a", "g"),
        "0x" + TEXT[2:],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{'1' * 32}-{'0' * 16}-01",
        f"00-{'1' * 31}-00f067aa0ba902b7-01",
        f"00-{'٣' * 32}-00f067aa0ba902b7-01",
        f"{TEXT}\n{TEXT}",
        "cc" + TEXT[2:] + "more",
        "00-" * 100_000,
    ],
)
def test_anything_else_is_no_reference(text: str) -> None:
    assert parse_traceparent(text) is None
