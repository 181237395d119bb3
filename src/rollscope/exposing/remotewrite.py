"""Families as requests of Prometheus' remote write, and the way there.

What is sent is what a scrape would have found: the same series, with `job` and `instance` added. A
series that is not there any more gets the marker of staleness, so that queries end it at once.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlunsplit

import msgspec
import pyarrow as pa

from rollscope._version import __version__
from rollscope.errors import SettingError
from rollscope.exposing.writemessage import (
    STALE,
    write_exemplar,
    write_labels,
    write_metadata,
    write_sample,
    write_series,
    write_value,
)
from rollscope.instrument.sinks.httpaddress import split_http
from rollscope.metrics.exposition import write_number
from rollscope.metrics.families import Distribution, Exemplar, Exposed, Family, Point
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.connection import KeptConnection
from rollscope.otlp.export.replies import read_words
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed

__all__ = ["RemoteTarget", "RemoteWriter", "Shape", "shape_of"]

_MOST_SERIES: Final = 2_000
"""In one request, as Prometheus itself sends."""
_METADATA_EVERY: Final = 4
"""Requests with it are one in so many looks: it hardly ever changes."""
_TIMEOUT_S: Final = 10.0
_TOO_MANY: Final = 429
_TRUST: Final = "name a file with who signed its certificate in SSL_CERT_FILE"

Shape = tuple[str, tuple[str, ...], tuple[float, ...]]
"""What tells families apart: a name may come back with other labels or bounds."""


def shape_of(family: Family) -> Shape:
    """Say what makes a family's series the same as before."""
    return family.name, family.labels, family.bounds


class _Series(msgspec.Struct):
    """What is kept of one point: the labels of each of its series, and what was said last."""

    labels: list[bytes]
    """Of a histogram: of each bucket, of the sum, and of the count."""
    exemplars: Mapping[int, Exemplar] = {}


_Known = dict[Shape, dict[tuple[str, ...], _Series]]


class RemoteWriter:
    """Writes requests, one look after the other."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """Make ready.

        Args:
            labels: Added to every series; a label of that name gets `exported_` before it.
        """
        self._labels = dict(labels)
        self._known: _Known = {}
        self._looks = 0

    def encode(self, exposed: Sequence[Exposed], at_ns: int) -> list[bytes]:
        """Write what families stand at."""
        before, self._known = self._known, {}
        at_ms = at_ns // 1_000_000
        series = [*self._fresh(exposed, before, at_ms), *self._gone(before, at_ms)]
        head = b""
        if self._looks % _METADATA_EVERY == 0:
            head = b"".join(write_metadata(each.family) for each in exposed)
        self._looks += 1
        return _requests(series, head)

    def encode_ending(self, at_ns: int) -> list[bytes]:
        """Write that all series have ended."""
        before, self._known = self._known, {}
        return _requests(self._gone(before, at_ns // 1_000_000), b"")

    def _fresh(self, exposed: Iterable[Exposed], before: _Known, at_ms: int) -> Iterator[bytes]:
        for family, points in exposed:
            shape = shape_of(family)
            known = before.get(shape, {})
            fresh = self._known.setdefault(shape, {})
            for point in points:
                if point.labels in fresh:
                    continue  # receivers refuse a request that says a thing twice
                series = known.get(point.labels) or self._make(family, point)
                fresh[point.labels] = series
                yield from _told(series, point, at_ms)

    def _gone(self, before: _Known, at_ms: int) -> Iterator[bytes]:
        ended = write_sample(STALE, at_ms)
        for shape, known in before.items():
            left = self._known.get(shape, {})
            for values, series in known.items():
                if values not in left:
                    yield from (write_series(labels, ended) for labels in series.labels)

    def _make(self, family: Family, point: Point) -> _Series:
        own = {
            f"exported_{name}" if name in self._labels else name: value
            for name, value in zip(family.labels, point.labels, strict=True)
        }
        shared = [*own.items(), *self._labels.items()]

        def named(suffix: str, *more: tuple[str, str]) -> bytes:
            return write_labels([("__name__", family.name + suffix), *shared, *more])

        if not isinstance(point.value, Distribution):
            return _Series([named("")])
        bounds = [*(write_number(bound) for bound in family.bounds), "+Inf"]
        buckets = [named("_bucket", ("le", bound)) for bound in bounds]
        return _Series([*buckets, named("_sum"), named("_count")])


def _told(series: _Series, point: Point, at_ms: int) -> Iterator[bytes]:
    value = point.value
    if not isinstance(value, Distribution):
        yield write_series(series.labels[0], write_sample(write_value(value), at_ms))
        return
    before, series.exemplars = series.exemplars, value.exemplars
    counts = list(accumulate(value.counts))
    numbers = (*counts, value.total, counts[-1] if counts else 0)
    for place, (labels, number) in enumerate(zip(series.labels, numbers, strict=True)):
        parts = [labels, write_sample(write_value(number), at_ms)]
        exemplar = value.exemplars.get(place)
        if exemplar is not None and exemplar != before.get(place):
            parts.append(write_exemplar(exemplar))
        yield write_series(*parts)


def _requests(series: Iterable[bytes], head: bytes) -> list[bytes]:
    rest, requests = iter(series), []
    while batch := list(islice(rest, _MOST_SERIES)):
        # Metadata comes after the series, by the number of its field.
        packed: bytes = pa.compress(b"".join(batch) + head, codec="snappy", asbytes=True)
        requests.append(packed)
        head = b""
    return requests


class RemoteTarget:
    """A receiver of remote write."""

    def __init__(
        self, address: str, headers: Mapping[str, str], token_file: Path | None = None
    ) -> None:
        """Make ready; nothing is connected yet.

        Args:
            address: Where it listens, with name and password if it wants them.
            headers: Sent with each request.
            token_file: Holds a token; read anew for each request, since tokens are changed.

        Raises:
            SettingError: The address is none.
        """
        bare, credentials = _split(address)
        self._connection = KeptConnection(bare, _TIMEOUT_S)
        self._token_file = token_file
        self._headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
            "User-Agent": f"rollscope/{__version__}",
            **credentials,
            **headers,
        }

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once."""
        del signal  # there is one only
        answer = self._connection.post(body, self._headers | self._token(), trust=_TRUST)
        if answer.is_taken:
            return Delivered()
        where = f"remote write to {self._connection.place}"
        said = f"{where} is answered {answer.status} {answer.reason}{read_words(answer.data)}"
        if answer.status == _TOO_MANY or answer.status >= 500:
            raise Again(said, answer.retry_after_s)
        raise ExportFailed(said)

    def _token(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Again(f"{self._token_file} cannot be read ({error})") from error
        return {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _split(address: str) -> tuple[str, dict[str, str]]:
    """Take name and password out of an address, so that no message ever shows them."""
    parts = split_http(address)
    if parts is None:
        raise SettingError("--remote-write wants an address such as http://HOST:9090/api/v1/write")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if parts.username is None:
        return bare, {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return bare, {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
