"""Remote write's messages as protobuf's own library reads them: the referee of our writer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

__all__ = ["read_request", "samples_of"]

_PARTS = descriptor_pb2.FieldDescriptorProto
_FIELDS = {
    "Label": [("name", 1, "STRING"), ("value", 2, "STRING")],
    "Sample": [("value", 1, "DOUBLE"), ("timestamp", 2, "INT64")],
    "Exemplar": [("labels", 1, "*Label"), ("value", 2, "DOUBLE"), ("timestamp", 3, "INT64")],
    "TimeSeries": [
        ("labels", 1, "*Label"),
        ("samples", 2, "*Sample"),
        ("exemplars", 3, "*Exemplar"),
    ],
    "MetricMetadata": [
        ("type", 1, "INT32"),
        ("metric_family_name", 2, "STRING"),
        ("help", 4, "STRING"),
        ("unit", 5, "STRING"),
    ],
    "WriteRequest": [("timeseries", 1, "*TimeSeries"), ("metadata", 3, "*MetricMetadata")],
}


def _make() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="write.proto", package="t", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            held = message.field.add(name=field, number=number, label=_PARTS.LABEL_OPTIONAL)
            if kind.startswith("*"):
                held.label, held.type = _PARTS.LABEL_REPEATED, _PARTS.TYPE_MESSAGE
                held.type_name = f".t.{kind[1:]}"
            else:
                held.type = getattr(_PARTS, f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.WriteRequest"))


_WriteRequest = _make()


def read_request(body: bytes) -> Any:
    """Unpack and read a request; unknown fields are refused."""
    size = shift = place = 0
    while True:
        size |= (body[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if body[place - 1] < 0x80:
            break
    plain = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
    request = _WriteRequest.FromString(plain)
    assert len(request.SerializeToString()) == len(plain), "something was not understood"
    return request


def samples_of(bodies: list[bytes]) -> dict[str, tuple[float, int]]:
    """Give value and time of every series, by its name and labels as a query shows them."""
    found = {}
    for body in bodies:
        for series in read_request(body).timeseries:
            pairs = [(label.name, label.value) for label in series.labels]
            assert pairs == sorted(pairs)
            assert all(value for _, value in pairs)
            labels = dict(pairs)
            name = labels.pop("__name__")
            shown = name + "{" + ",".join(f"{k}={v}" for k, v in labels.items()) + "}"
            assert shown not in found, f"{shown} came twice"
            (sample,) = series.samples
            found[shown] = (sample.value, sample.timestamp)
    return found
