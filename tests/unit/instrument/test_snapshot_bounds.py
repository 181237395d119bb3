"""Payloads cost no more than their limit, and images in them are replaced by a note."""

from __future__ import annotations

import base64
import json
import tracemalloc
from typing import Any

import pytest

from rollscope.instrument.snapshot import snapshot_payload

LIMIT = 10_000


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 100_000] * 2_000,
        [{"role": "user", "content": "y" * 1_000}] * 200_000,
        {str(n): "z" * 1_000 for n in range(200_000)},
        list(range(5_000_000)),
        [[list(range(1000))] * 1000] * 1000,
    ],
    ids=["texts", "messages", "map", "tokens", "nested"],
)
def test_a_payload_far_over_its_limit_is_not_encoded_whole(value: Any) -> None:
    tracemalloc.start()
    try:
        text, cut = snapshot_payload(value, LIMIT)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50 * LIMIT  # encoded whole, each takes at least 15 MB
    assert cut
    assert LIMIT - 4 <= len(text.encode()) <= LIMIT


def test_only_what_fits_of_a_conversation_is_kept_and_readable() -> None:
    messages = [{"role": "user", "content": f"{n} " + "x" * 500} for n in range(100)]
    text, cut = snapshot_payload(messages, LIMIT)
    assert cut
    assert text == json.dumps(messages, separators=(",", ":"))[:LIMIT]


def test_an_image_becomes_a_note_with_its_size() -> None:
    image = base64.b64encode(bytes(30_000)).decode()
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        {"type": "input_audio", "input_audio": {"data": image, "format": "wav"}},
    ]
    text, cut = snapshot_payload([{"role": "user", "content": parts}], LIMIT)
    assert not cut
    content = json.loads(text)[0]["content"]
    assert content[1]["image_url"]["url"] == "<image/png, 30000 bytes as base64, not kept>"
    assert content[2]["input_audio"]["data"] == "<data, 30000 bytes as base64, not kept>"


@pytest.mark.parametrize(
    "value",
    [
        {"data": "a long text, with spaces and commas. " * 100},
        {"content": "x" * 3000},
        {"data": "short"},
        "data:image/png;base64,short",
    ],
)
def test_what_is_no_long_base64_stays(value: Any) -> None:
    text, cut = snapshot_payload(value, LIMIT)
    assert json.loads(text) == value
    assert not cut


def test_deep_values_do_not_exhaust_the_stack() -> None:
    value: Any = "kept"
    for _ in range(100_000):
        value = [value]
    text, cut = snapshot_payload(value, LIMIT)
    assert cut
    assert text
    while value != "kept":  # taken apart by hand: freeing it all at once is deep, too
        value = value[0]
