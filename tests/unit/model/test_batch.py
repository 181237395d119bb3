from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollscope.errors import FrameError, UnknownSchema
from rollscope.model.batch import (
    SCHEMA_VERSION,
    Fact,
    Heartbeat,
    Metric,
    Payload,
    Stack,
    decode_batch,
    encode_batch,
    index_column,
    number_column,
    read_index_column,
    read_number_column,
)
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import MetricType
from tests.builders import make_batch, make_columns, make_header, make_row

FULL: dict[str, Any] = {
    "header": make_header(rank=3, parent=b"\0" * 8),
    "spans": make_columns(make_row(1, "a", attrs={"n": 1}), make_row(2, "b", fields={"lane": "x"})),
    "facts": [Fact(b"t" * 16, 7, 8, {"reward": 0.5})],
    "metrics": [Metric(MetricType.HISTOGRAM, "s", {"a": "b"}, 2.5, 2, 1.0, 1.5, {0: 1, 5: 1})],
    "payloads": [Payload(b"t" * 16, 7, 8, "messages", "[]", True)],
    "stacks": [Stack(7, 8, "Task-1", ["a.py:1 f"])],
    "heartbeat": Heartbeat(number_column([1, 2])),
    "drops": {"span.slow_sink": 4},
    "end": "exit",
}


def test_every_part_of_a_batch_comes_back() -> None:
    batch = make_batch(5, clock=ClockLine(1, 2, -3, 4), **FULL)
    assert decode_batch(encode_batch(batch)) == batch


@pytest.mark.parametrize("part", FULL)
def test_each_part_stands_alone(part: str) -> None:
    batch = make_batch(**{part: FULL[part]})
    decoded = decode_batch(encode_batch(batch))
    assert getattr(decoded, part) == FULL[part]
    assert decoded == batch


def test_an_empty_batch_is_small() -> None:
    assert len(encode_batch(make_batch())) < 100


def as_map(**changes: Any) -> dict[str, Any]:
    return {**msgspec.msgpack.decode(encode_batch(make_batch())), **changes}


def test_a_field_that_we_do_not_know_is_passed_over() -> None:
    body = msgspec.msgpack.encode(as_map(weather="fine"))
    assert decode_batch(body) == make_batch()


def test_a_metric_of_an_older_writer_has_neither_a_time_nor_a_step() -> None:
    older = ["counter", "n", {"a": "b"}, 2.0, 2, None, None, {}]
    (metric,) = decode_batch(msgspec.msgpack.encode(as_map(metrics=[older]))).metrics
    assert metric == Metric(MetricType.COUNTER, "n", {"a": "b"}, 2.0, 2)
    assert (metric.mono_ns, metric.step) == (0, None)


@pytest.mark.parametrize(("mono_ns", "step"), [(-1, 0), (2**62, 0), (1, 2**63)])
def test_a_metric_of_no_possible_time_or_step_is_refused(mono_ns: int, step: int) -> None:
    odd = ["counter", "n", {}, 2.0, 2, None, None, {}, mono_ns, step]
    with pytest.raises(FrameError):
        decode_batch(msgspec.msgpack.encode(as_map(metrics=[odd])))


def test_a_newer_schema_is_told_apart_from_damage() -> None:
    newer = encode_batch(make_batch(schema=SCHEMA_VERSION + 1))
    with pytest.raises(UnknownSchema, match=rf"schema {SCHEMA_VERSION + 1}.*upgrade rollscope"):
        decode_batch(newer)


def test_a_newer_schema_is_known_even_if_its_fields_have_changed() -> None:
    newer = msgspec.msgpack.encode(as_map(schema=9, mono_ns="text now", clock={}))
    with pytest.raises(UnknownSchema, match="schema 9"):
        decode_batch(newer)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\xc0",
        b"text",
        msgspec.msgpack.encode([1, 2, 3]),
        msgspec.msgpack.encode({"schema": "1"}),
        msgspec.msgpack.encode({"schema": SCHEMA_VERSION}),
        msgspec.msgpack.encode({1: 2}),
        msgspec.msgpack.encode(as_map(process="text")),
        msgspec.msgpack.encode(as_map(heartbeat={"open_ids": b"123"})),
        encode_batch(make_batch(**FULL))[:-1],
        encode_batch(make_batch(**FULL)) + b"\0",
        msgspec.msgpack.encode(as_map(end="no UTF-8")).replace(b"no UTF", b"\xf4\xff UTF"[:6]),
        pytest.param(
            msgspec.msgpack.encode(as_map(facts=["deep"])).replace(b"\xa4deep", b"\x91" * 100_000),
            id="deep",
        ),
    ],
)
def test_what_is_no_batch_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError) as told:
        decode_batch(body)
    assert not isinstance(told.value, UnknownSchema)


ROWS = make_columns(make_row(1, "a", attrs={"n": 1}), make_row(2, "b"))


@pytest.mark.parametrize(
    "changes",
    [
        {"status": b"\1"},
        {"status": b"\1\1\1"},
        {"status": b"\1\5"},
        {"what": b"\x10\x07"},
        {"what": b"\x10"},
        {"name": b"\0"},
        {"name": b"\0\2"},
        {"name": b"\0\0\0\0\2\0\0\0"},
        {"names": []},
        {"scope": b"\0\1"},
        {"scope": b"\0\0\0"},
        {"scopes": []},
        {"span_id": b""},
        {"span_id": bytes(15)},
        {"parent_id": bytes(17)},
        {"start_ns": bytes(24)},
        {"end_ns": bytes(8)},
    ],
    ids=str,
)
def test_columns_that_do_not_fit_together_are_refused(changes: dict[str, Any]) -> None:
    columns = msgspec.structs.replace(ROWS, **changes)
    with pytest.raises(FrameError, match="do not fit together"):
        decode_batch(encode_batch(make_batch(spans=columns)))


def test_numbers_come_back_from_a_column_up_to_64_bits() -> None:
    numbers = [0, 1, 255, 2**32, 2**63, 2**64 - 1]
    column = number_column(numbers)
    assert list(read_number_column(column)) == numbers
    assert column[8:16] == b"\1" + bytes(7)  # little-endian on every machine


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        number_column([number])


@pytest.mark.parametrize(("size", "width"), [(1, 1), (256, 1), (257, 4), (70_000, 4)])
def test_numbers_into_a_table_take_one_byte_or_four(size: int, width: int) -> None:
    indices = [0, size - 1, size // 2]
    column = index_column(indices, size)
    assert len(column) == 3 * width
    assert list(read_index_column(column, 3)) == indices


def test_a_batch_of_more_names_than_a_byte_can_count_comes_back() -> None:
    rows = [make_row(n, f"name-{n}") for n in range(1, 301)]
    batch = decode_batch(encode_batch(make_batch(spans=make_columns(*rows))))
    assert batch.spans is not None
    names = [batch.spans.names[at] for at in read_index_column(batch.spans.name, 300)]
    assert names == [f"name-{n}" for n in range(1, 301)]
