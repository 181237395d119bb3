"""Reads exports back with nothing of what wrote them."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from decimal import Decimal
from typing import Any


def read_chrome(data: bytes) -> dict[str, Any]:
    """Read Chrome JSON strictly: no NaN, no key twice, every digit kept."""

    def refuse(text: str) -> Any:
        raise AssertionError(f"{text} is no JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    found: dict[str, Any] = json.loads(
        data.decode(), parse_constant=refuse, object_pairs_hook=once, parse_float=Decimal
    )
    return found


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Take a protobuf message apart."""
    at = 0
    found: list[tuple[int, Any]] = []
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            found.append((key >> 3, value))
            continue
        size, at = (8, at) if key & 7 == 1 else _varint(data, at)
        assert key & 7 in (1, 2)
        assert at + size <= len(data), "cut short"
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


class Perfetto:
    """What stands in a Perfetto trace."""

    def __init__(self, data: bytes) -> None:
        self.titles: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.slices: list[tuple[int, int, int | None, str]] = []
        """Track, start, end and name."""
        self.instants: list[tuple[int, str]] = []
        self.counters: list[tuple[str, int, float]] = []
        self.starts: dict[int, str] = {}
        self.ends: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._open: dict[int, list[int]] = defaultdict(list)
        for number, packet in fields(data):
            assert number == 1
            self._read(dict(fields(packet)))

    def _read(self, packet: dict[int, Any]) -> None:
        assert packet[10] == 1
        if 60 in packet:
            told = dict(fields(packet[60]))
            assert told[1] not in self.titles
            self.titles[told[1]] = told[2].decode()
            if 5 in told:
                assert told[5] in self.titles, "a track stands before what it is part of"
                self.parents[told[1]] = told[5]
        for kind, entry in fields(packet.get(12, b"")):
            if kind == 2:
                held = dict(fields(entry))
                self._names[held[1]] = held[2].decode()
        if 11 in packet:
            self._event(packet[8], fields(packet[11]))

    def _event(self, time_ns: int, event: list[tuple[int, Any]]) -> None:
        one = dict(event)
        track, name = one[11], self._names.get(one.get(10, 0), "")
        assert track in self.titles
        if one[9] == 1:
            self._open[track].append(len(self.slices))
            self.slices.append((track, time_ns, None, name))
        elif one[9] == 2:
            at = self._open[track].pop()
            began = self.slices[at]
            assert time_ns >= began[1]
            self.slices[at] = (*began[:2], time_ns, began[3])
        elif one[9] == 3:
            self.instants.append((time_ns, name))
        else:
            self.counters.append((self.titles[track], time_ns, *struct.unpack("<d", one[44])))
        for number, into in ((47, self.starts), (48, self.ends)):
            for key, value in event:
                if key == number:
                    into[int.from_bytes(value, "little")] = name
