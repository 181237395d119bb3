"""Attributes as columns: the few that questions are asked about, and all of them as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["FIELDS", "PROMOTED", "family_of", "json_column", "read_columns", "whole_number"]

_encoder = msgspec.json.Encoder(enc_hook=str)  # what has no JSON, such as an extension type

Attrs = dict[str, Any]


def whole_number(value: object) -> int | None:
    """Read a whole number that fits a column; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if -(2**63) <= value < 2**63 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) else None


def _only_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_MOST_SECONDS: Final = 9e9
"""More would not fit 64 bits as nanoseconds."""


def _nanoseconds(value: object) -> int | None:
    number = _number(value)
    if number is None or not abs(number) < _MOST_SECONDS:  # NaN included
        return None
    return round(number * 1e9)


def _span_id(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 16:
        try:
            return int(value, 16)
        except ValueError:
            return None
    return None


Read = Callable[[object], Any]
Source = tuple[tuple[str, ...], Read]
"""The keys a column is read from, the first one present winning, and how a value is read."""

_AS_IT_IS: Final[dict[Read, type]] = {
    whole_number: int,
    _number: float,
    _text: str,
    _only_text: str,
}
"""What a reader leaves unchanged, so that whole columns need no look at each value."""

PROMOTED: Final[dict[str, Source]] = {
    "detail": (("tool", "env", "function", "model", "service"), _text),
    "replica": (("replica",), _text),
    "family": (("family",), _text),
    "attempt": (("attempt",), whole_number),
    "turns": (("turns",), whole_number),
    "tokens_in": (("tokens_in", "input_tokens", "prompt_tokens"), whole_number),
    "tokens_out": (("tokens_out", "output_tokens", "completion_tokens", "tokens"), whole_number),
    "waited_ns": (("queue_wait_s",), _nanoseconds),
    "queue_ns": (("queue_s",), _nanoseconds),
    "deadline_ns": (("deadline_s",), _nanoseconds),
    "link": (("waits_for",), _span_id),
    "reward": (("reward",), _number),
}
"""Attributes that questions are asked about."""

FIELDS: Final[dict[str, Source]] = {
    "reason": (("reason",), _only_text),
    "outcome": (("outcome",), _only_text),
    "lane": (("lane",), _only_text),
    "version_start": (("version_start",), whole_number),
    "version_end": (("version_end",), whole_number),
}
"""Fields that few spans have."""


def read_columns(
    maps: Sequence[Attrs],
    sources: Mapping[str, Source],
    types: pa.Schema,
    *,
    places: npt.NDArray[np.int64] | None = None,
    size: int | None = None,
) -> dict[str, pa.Array]:
    """Read columns from maps, most of which look like many others.

    Args:
        maps: One for each row, or for each of `places`.
        sources: What to read, by column.
        types: The types of the columns.
        places: Which rows the maps belong to; every row if not given.
        size: How many rows there are.
    """
    rows = np.arange(len(maps)) if places is None else places
    total = len(maps) if size is None else size
    found: dict[str, tuple[list[npt.NDArray[np.int64]], list[Any]]] = {}
    for shape, chosen, alike in _groups(maps):
        for column, (keys, read) in sources.items():
            key = next((key for key in keys if key in shape), None)
            if key is None:
                continue
            at, gathered = found.setdefault(column, ([], []))
            at.append(rows[chosen])
            gathered += _read_alike(list(map(itemgetter(key), alike)), read)
    return {
        column: _scatter(total, *found.get(column, ([], [])), types.field(column).type)
        for column in sources
    }


def _groups(
    maps: Sequence[Attrs],
) -> Iterator[tuple[Sequence[str], npt.NDArray[np.int64], Sequence[Attrs]]]:
    """Sort maps by the keys they have: the keys, the places, and the maps of each sort."""
    shapes = list(map(tuple, maps))
    numbers = {shape: number for number, shape in enumerate(dict.fromkeys(shapes))}
    which = np.fromiter(map(numbers.__getitem__, shapes), np.int64, len(shapes))
    for shape, number in numbers.items():
        chosen = np.nonzero(which == number)[0]
        yield shape, chosen, [maps[row] for row in chosen.tolist()]


def _read_alike(values: list[Any], read: Read) -> list[Any]:
    """Read values of one key, which are nearly always of one type."""
    kinds = set(map(type, values))
    if kinds == {_AS_IT_IS.get(read)}:
        return values
    if read is _nanoseconds and kinds == {float}:
        seconds = np.array(values)
        if (np.abs(seconds) < _MOST_SECONDS).all():
            nanoseconds: list[Any] = np.rint(seconds * 1e9).astype(np.int64).tolist()
            return nanoseconds
    return [read(value) for value in values]


def _scatter(
    size: int, at: list[npt.NDArray[np.int64]], values: list[Any], kind: pa.DataType
) -> pa.Array:
    """Make a column that is null but for the given rows."""
    if not at:
        return pa.nulls(size, kind)
    rows = np.concatenate(at)
    is_word = pa.types.is_dictionary(kind)
    try:
        source = pa.array(values, kind.value_type if is_word else kind)
    except OverflowError:  # whole numbers beyond 64 bits
        source = pa.array([whole_number(value) for value in values], kind)
    words = source.dictionary_encode() if is_word else None
    numbers = source if words is None else words.indices
    is_null = np.ones(size, bool)
    column = np.zeros(size, numbers.type.to_pandas_dtype())
    if numbers.null_count:
        is_null[rows] = numbers.is_null().to_numpy(zero_copy_only=False)
        column[rows] = numbers.fill_null(0).to_numpy()
    else:
        is_null[rows] = False
        column[rows] = numbers.to_numpy()
    filled = pa.array(column, mask=is_null)
    return filled if words is None else pa.DictionaryArray.from_arrays(filled, words.dictionary)


def json_column(values: Sequence[Any]) -> pa.Array:
    """Write each value as JSON text, all in one go."""
    lines = np.frombuffer(_encoder.encode_lines(values), np.uint8)
    # JSON escapes line ends inside of text, so each one here ends a value.
    is_end = lines == 0x0A
    ends = np.nonzero(is_end)[0] - np.arange(len(values))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    text = lines[~is_end]
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(text))


def family_of(task_key: str | None) -> str | None:
    """Give what a task is one of: what precedes the first slash of its key."""
    if task_key is None:
        return None
    family, slash, _ = task_key.partition("/")
    return family if slash else None
