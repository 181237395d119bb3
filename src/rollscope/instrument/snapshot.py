"""Payloads: from whatever the host handed over to JSON text of bounded length.

What cannot fit is left out before anything is encoded, so that a list of gigabytes costs no more
than its limit. Images and other binary parts that stand in messages as base64 are replaced by a
note: they are long, and nobody reads them.
"""

import re
from typing import Any, Final

import msgspec

from rollscope.instrument.sanitise import clean_value

__all__ = ["snapshot_payload"]

_MAX_DEPTH: Final = 64
_CHUNK: Final = 256
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_LONG_BASE64: Final = 1024
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)[\w.+=;-]*;base64,")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_=-]+")
_BASE64_KEYS: Final = frozenset({"b64_json", "bytes", "data", "image", "image_data"})
"""Where chat APIs put base64 without saying so in the text itself."""


def snapshot_payload(value: Any, limit: int) -> tuple[str, bool]:  # noqa: ANN401
    """Give a payload as JSON text of at most `limit` bytes, and whether it had to be cut."""
    bounded = _Bounded(limit)
    try:
        value = bounded.take(value, "", 0)
    except Exception:  # another thread changes it just now, or it holds itself
        return _encode_fitted(clean_value(value, limit, "payload"), limit, was_cut=True)
    return _encode_fitted(value, limit, was_cut=bounded.was_cut)


def _encode_fitted(value: Any, limit: int, *, was_cut: bool) -> tuple[str, bool]:  # noqa: ANN401
    def replace(odd: object) -> Any:  # noqa: ANN401
        return clean_value(odd, limit, "payload")

    try:
        encoded = msgspec.json.encode(value, enc_hook=replace)
    except Exception:
        # One number beyond 64 bits or half a character is enough; it must not cost the rest.
        import json  # takes both, for ten times the time

        try:
            plain = msgspec.to_builtins(value, str_keys=True, enc_hook=replace)
            encoded = json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
        except Exception:  # it has keys that no JSON can have
            encoded, was_cut = msgspec.json.encode(replace(value)), True
    if len(encoded) <= limit:
        return encoded.decode(), was_cut
    return encoded[:limit].decode("utf-8", "ignore"), True


class _Bounded:
    """Copies a value as far as its JSON can fit into a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._left = limit + 1
        """Bytes that may still come, counted low: what is kept may turn out longer, never less."""
        self.was_cut = False

    def take(self, value: Any, key: str, depth: int) -> Any:  # noqa: ANN401
        kind = type(value)
        if issubclass(kind, str):
            return self._text(value, key)
        if issubclass(kind, (list, tuple)):
            self._check(depth)
            return self._items(value, depth)
        if issubclass(kind, dict):
            self._check(depth)
            return self._map(value, depth)
        self._left -= 2
        return value

    def _check(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise RecursionError("a payload is too deep, or holds itself")

    def _text(self, text: str, key: str) -> str:
        size = str.__len__(text)
        note = _base64_note(text, size, key) if size > _LONG_BASE64 else None
        if note is not None:
            text, size = note, len(note)
        room = max(self._left, 0)
        self._left -= size + 2
        if size > room:
            self.was_cut = True
            return str.__getitem__(text, slice(room))
        return text

    def _items(self, items: Any, depth: int) -> list[Any]:  # noqa: ANN401  (a list or a tuple)
        base = list if issubclass(type(items), list) else tuple
        taken: list[Any] = []
        size = base.__len__(items)
        for at in range(0, size, _CHUNK):
            chunk = base.__getitem__(items, slice(at, at + _CHUNK))
            if _NUMBERS.issuperset(map(type, chunk)):  # tokens: a look at each would take long
                taken += chunk
                self._left -= 2 * len(chunk)
            else:
                for item in chunk:
                    if self._left <= 0:
                        break
                    taken.append(self.take(item, "", depth + 1))
            if self._left <= 0:
                break
        self.was_cut |= len(taken) < size
        return taken

    def _map(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        taken: dict[Any, Any] = {}
        for key, item in dict.items(value):
            if self._left <= 0:
                self.was_cut = True
                break
            is_text = issubclass(type(key), str)
            self._left -= str.__len__(key) + 3 if is_text else 3
            taken[key] = self.take(item, key if is_text else "", depth + 1)
        return taken


def _base64_note(text: str, size: int, key: str) -> str | None:
    """Say what stands in a long text, if it is base64; None if it is not."""
    head = str.__getitem__(text, slice(_LONG_BASE64))
    url = _DATA_URL.match(head)
    if url is None and not (key in _BASE64_KEYS and _BASE64.fullmatch(head)):
        return None
    what = "data" if url is None else url[1]
    body = size - (0 if url is None else url.end())
    return f"<{what}, {body * 3 // 4} bytes as base64, not kept>"
