from __future__ import annotations

from rollscope.instrument.sinks import Frame, NullSink, Opening, Sink
from rollscope.instrument.sinks.memory import MemorySink
from tests.builders import make_header

OPENING = Opening("r", "d", bytes(8), make_header(), {})


def test_the_memory_sink_keeps_everything_in_order() -> None:
    sink = MemorySink()
    assert isinstance(sink, Sink)
    sink.open(OPENING)
    sink.write(Frame(b"a"))
    sink.write(Frame(b"b", is_payload=True))
    assert not sink.closed
    sink.close()
    assert sink.closed
    assert sink.openings == [OPENING]
    assert sink.frames == [Frame(b"a"), Frame(b"b", is_payload=True)]
    sink.open(OPENING)
    assert not sink.closed


def test_the_null_sink_takes_everything_and_keeps_nothing() -> None:
    sink = NullSink()
    assert isinstance(sink, Sink)
    sink.open(OPENING)
    sink.write(Frame(b"a"))
    sink.close()
    assert vars(sink) == {}
