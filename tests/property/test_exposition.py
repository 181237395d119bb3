"""The reader of expositions takes anything: it never fails, and loses nothing that is right."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.exposition import ExpositionReader
from rollscope.collect.increments import Increments

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
LABELS = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=12), max_size=4
)
VALUES = st.floats()
NOISE = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='a{}"=\\, #\n1.eNI+-', max_size=40).map(str.encode),
    st.sampled_from([b"# TYPE a histogram", b"# EOF x", b'a_bucket{le="x"} 1', b"{", b'a{b="']),
)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value!r}\n"


@given(NAMES, LABELS, VALUES, st.integers(1, 50))
def test_what_is_written_is_read(
    name: str, labels: dict[str, str], value: float, piece: int
) -> None:
    data = _line(name, labels, value).encode("utf-8", "replace")
    reader = ExpositionReader(lambda _: True)
    for at in range(0, len(data), piece):
        assert reader.feed(data[at : at + piece])

    (point,) = reader.close().points

    sent = {key: text.encode("utf-8", "replace").decode() for key, text in labels.items()}
    assert (point.name, point.labels) == (name, sent)
    assert point.value == value or math.isnan(value)


@given(st.lists(NOISE, max_size=12), st.integers(1, 40))
def test_noise_is_counted_and_hides_nothing_on_lines_of_its_own(
    noise: list[bytes], piece: int
) -> None:
    lines = [one.replace(b"# EOF", b"# E") for one in noise]
    data = b"\n".join([*lines, b"vllm:num_requests_running 4", b""])
    choice = SeriesChoice(["*"])
    increments = Increments(choice, lambda _: {})
    for _ in range(2):
        reader = ExpositionReader(choice.wants)
        for at in range(0, len(data), piece):
            reader.feed(data[at : at + piece])
        exposition = reader.close()
        reading = increments.read(exposition)
        increments.accept(reading)

    found = [metric for metric in reading.metrics if metric.name == "vllm:num_requests_running"]
    assert [metric.value for metric in found] == [4.0]
    assert exposition.bad_lines + len(exposition.points) == exposition.series
