"""The messages of remote write 1.0, written by hand: a few fields of protobuf each.

A series is its labels, then its samples, then its exemplars. Labels stay the same from one request
to the next, so they are written once and kept by whoever sends them.
"""

import struct
from collections.abc import Iterable
from typing import Final

from rollscope.metrics.families import Exemplar, Family, FamilyKind

__all__ = [
    "STALE",
    "write_exemplar",
    "write_labels",
    "write_metadata",
    "write_sample",
    "write_series",
    "write_value",
]

STALE: Final = struct.pack("<Q", 0x7FF0_0000_0000_0002)
"""The one NaN that says: this series has ended here."""
_KINDS: Final = {
    FamilyKind.COUNTER: 1,
    FamilyKind.GAUGE: 2,
    FamilyKind.HISTOGRAM: 3,
    FamilyKind.INFO: 2,
}
"""An info is a gauge here: the type of its own is known to few receivers."""
_pack_double = struct.Struct("<d").pack


def write_value(value: float) -> bytes:
    """Write a value as a sample holds it."""
    return _pack_double(value)


def write_labels(labels: Iterable[tuple[str, str]]) -> bytes:
    """Write the labels of a series: sorted, and without empty ones, as receivers demand."""
    kept = sorted((name, value) for name, value in labels if value)
    return b"".join(_field(b"\x0a", _pair(name, value)) for name, value in kept)


def write_sample(number: bytes, at_ms: int) -> bytes:
    """Write a sample of a series."""
    return _field(b"\x12", b"\x09" + number + b"\x10" + _varint(at_ms))


def write_exemplar(exemplar: Exemplar) -> bytes:
    """Write an exemplar of a series."""
    labels = b"".join(_field(b"\x0a", _pair(*each)) for each in sorted(exemplar.labels))
    at_ms = _varint(round(exemplar.at_s * 1e3))
    return _field(b"\x1a", labels + b"\x11" + write_value(exemplar.value) + b"\x18" + at_ms)


def write_series(*parts: bytes) -> bytes:
    """Write a series of labels, samples and exemplars into a request."""
    return _field(b"\x0a", b"".join(parts))


def write_metadata(family: Family) -> bytes:
    """Write what a family means into a request."""
    texts = ((b"\x12", family.name), (b"\x22", family.help), (b"\x2a", family.unit))
    fields = [_field(tag, _text(text)) for tag, text in texts if text]
    return _field(b"\x1a", b"\x08" + _varint(_KINDS[family.kind]) + b"".join(fields))


def _pair(name: str, value: str) -> bytes:
    return _field(b"\x0a", _text(name)) + _field(b"\x12", _text(value))


def _text(text: str) -> bytes:
    """Encode text; what is no character, as half of a pair, becomes a question mark."""
    return text.encode("utf-8", "replace")


def _field(tag: bytes, body: bytes) -> bytes:
    return tag + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    if number < 0:
        number += 1 << 64
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
