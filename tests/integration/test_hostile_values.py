"""Values that cannot be written, or not as they are: each costs itself at most."""

from __future__ import annotations

import json

import pytest

from tests.integration.support import PATIENCE_S, Lab

_ATTRIBUTES = """
    import collections, datetime, decimal, enum, math, sys, threading, types, uuid
    from pathlib import Path
    from unittest.mock import MagicMock, Mock
    import rollscope as rs

    class Refuses:
        def _refuse(self, *args, **kwargs):
            raise RuntimeError("no")
        __repr__ = __str__ = __len__ = __iter__ = __hash__ = __eq__ = __bool__ = _refuse
        __class__ = property(_refuse)

    class Exits(dict):
        def _exit(self, *args, **kwargs):
            sys.exit("an attribute wants out")
        __iter__ = __len__ = items = keys = values = __getitem__ = _exit

    class Text(str):
        def __str__(self):
            raise RuntimeError("no")
        __len__ = __getitem__ = encode = isascii = __str__

    class SecretiveType(type):
        def __getattribute__(cls, name):
            raise RuntimeError("no")

    class Secretive(metaclass=SecretiveType):
        pass

    class NoNumpy:
        ndim = 0
        def item(self):
            sys.exit("a number wants out")
    NoNumpy.__module__ = "numpy"

    class Colour(enum.Enum):
        RED = object()

    loop = []
    loop.append(loop)
    deep = []
    for _ in range(10_000):
        deep = [deep]

    odd = [
        object(), Refuses(), Exits(a=1), Text("text"), Colour.RED, Colour, Mock(), Mock(spec=dict),
        Mock(spec=str), MagicMock(), loop, deep, {1: {(): None}}, {Refuses: Refuses()}, {1, 2},
        frozenset("ab"), b"bytes", bytearray(b"bytes"), memoryview(b"bytes"),
        memoryview(bytearray(12)).cast("B", (3, 4)), math.nan, math.inf, -math.inf, 2**64,
        -(2**63) - 1, 10**5000, True, "\\udc80", "\\x00", "e\\u0301" * 5000, "\\n\\x1b[31m", 1j,
        decimal.Decimal("1.5"), datetime.datetime.now(), uuid.uuid4(), Path("."), lambda: None,
        (number for number in range(3)), threading.Lock(), sys, types.SimpleNamespace(a=1),
        collections.OrderedDict(a=1), collections.Counter("aab"), range(10**12), ...,
        Secretive(), NoNumpy(),
    ]
    rs.init(payloads=True)
    for number, value in enumerate(odd):
        with rs.span(f"odd{number}", value=value, good=number):
            pass
        with rs.span(f"set{number}") as span:
            span.set(value=value, good=number)
        span.set(late=value)
        rs.event(f"event{number}", value=value)
        with rs.span(f"payload{number}"):
            rs.payload("odd", [value])
            rs.payload("good", number)
        rs.count("odd", value)
        rs.count("good", label=value)
    assert rs.flush()
    print(len(odd))
"""


def test_an_attribute_of_any_kind_harms_neither_the_program_nor_its_neighbours(lab: Lab) -> None:
    program = lab.start(_ATTRIBUTES)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert program.returncode == 0, err
    assert "Traceback" not in err
    assert all(line.startswith("Rollscope ") for line in err.splitlines())
    number = int(out)
    spans = {span.name: span for span in lab.spans()}
    assert len(spans) == 3 * number
    for at in range(number):
        for name in (f"odd{at}", f"set{at}"):
            assert spans[name].attrs["good"] == at
            assert "value" in spans[name].attrs
        assert "late" in spans[f"set{at}"].attrs
    assert len(lab.read().events) == number
    records = lab.cat("--payloads")
    assert sum(record["record"] == "payload" for record in records) == 2 * number
    counted = [one for one in records if one["record"] == "metric" and one["name"] == "good"]
    assert sum(one["value"] for one in counted) == number
    dropped = {key for drops in lab.read().drops.values() for key in drops}
    assert dropped <= {"metric.amount", "metric.no_number"}


def test_names_of_any_kind_are_recorded_as_text_on_one_line(lab: Lab) -> None:
    lab.finish("""
        import logging
        import rollscope as rs

        logging.disable()
        rs.init()
        names = [
            "", " ", "\\x00", "a\\nb", "\\r", "\\u2028", "\\x1b[2J", "\\udc80", "x" * 100_000,
            "\\u202e", '"', "</script>", "../../etc/passwd", "%s%n", "{0.__class__}", None, 7,
            3.5, b"bytes", ["list"], {"a": 1}, object(), Exception("no"),
        ]
        for name in names:
            with rs.task(name, group=name, tag=1), rs.session(sample=name, version=name):
                with rs.phase(name), rs.span(name, category=name), rs.state(name, lane=name):
                    rs.event(name)
                    rs.inject()
                    rs.child_env()
        assert rs.flush()
    """)

    records = lab.cat()  # which reads line by line
    spans = [span for span in lab.spans() if span.kind in ("phase", "span", "state")]
    assert len(spans) == 3 * 23
    assert all(isinstance(span.name, str) and len(span.name.encode()) <= 512 for span in spans)
    assert {"", "\x00", "a\nb", "</script>", "7", "None"} <= {span.name for span in spans}
    assert sum(record["record"] == "event" for record in records) == 23


def test_calls_that_make_no_sense_do_not_reach_the_program(lab: Lab) -> None:
    lab.finish("""
        import logging
        import rollscope as rs

        logging.disable()
        rs.init(payloads=True)
        with rs.session() as session:
            session.finish("great", reason=object(), version="new", reward=object())
        session.finish(None)
        rs.annotate(session, outcome="splendid", reason=3)
        rs.annotate("nonsense", a=1)
        rs.annotate(3, a=1)
        rs.annotate(None, a=1)
        rs.count("counter", "one")
        rs.count(None, None)
        rs.gauge(object(), object(), label=object())
        rs.observe("seconds", float("nan"))
        rs.payload("outside", "text")
        with rs.span("inside"):
            rs.payload(object(), object())
            rs.payload("messages", [{"content": "\\udc80", 1: object()}])
        with rs.attach({}), rs.attach({"traceparent": "nonsense"}), rs.attach({"traceparent": 3}):
            pass
        for carrier in (None, 7, "text", [("traceparent", "x")]):
            with rs.attach(carrier):
                pass
        @rs.trace(attrs=lambda: {1: "number", None: object()})
        def traced():
            pass
        traced()
        span = rs.span("never entered")
        span.__exit__(None, None, None)
        span.set(a=1)
        with rs.span("left twice") as span:
            pass
        span.__exit__(None, None, None)
        assert rs.flush()
    """)

    statuses = lab.statuses()
    assert statuses == {"session": "ok", "inside": "ok", "traced": "ok", "left twice": "ok"}


_HUGE = """
    import json, logging, sys
    import rollscope as rs
    from tests.integration.misbehaviour import RssWatch

    class Text(str):
        pass

    logging.disable()
    rs.init(payloads=True)
    with rs.span("warm up", text="x"):
        rs.inject()
    rs.flush()
    make = {
        "text": lambda: "x" * 200_000_000,
        "wide": lambda: "\\u4e00" * 30_000_000,
        "subclass": lambda: Text("x" * 60_000_000),
        "bytes": lambda: b"x" * 60_000_000,
        "list": lambda: [None] * 8_000_000,
    }
    huge = make[sys.argv[1]]()
    watch = RssWatch()
    with rs.span("attribute", value=huge) as span:
        span.set(more=huge)
    span.set(late=huge)
    rs.annotate(span, fact=huge)
    rs.event("event", value=huge)
    if isinstance(huge, str):
        with rs.span(huge), rs.task(huge, group=huge), rs.session() as session:
            rs.payload("messages", huge)
            session.finish("failed", reason=huge)
            rs.inject()
        rs.count("metric", 1, label=huge)
    if type(huge) is str:  # making an exception's text of a subclass is Python's to do
        try:
            with rs.span("raises"):
                raise ValueError(huge)
        except ValueError:
            pass
    assert rs.flush()
    print(json.dumps(watch.growth_mb))
"""


@pytest.mark.parametrize("kind", ["text", "wide", "subclass", "bytes", "list"])
def test_a_huge_value_is_not_copied(lab: Lab, kind: str) -> None:
    program = lab.start(_HUGE, kind)
    out, err = program.communicate(timeout=PATIENCE_S)

    assert program.returncode == 0, err
    print(kind, out)  # noqa: T201  (a figure worth seeing)
    assert json.loads(out) < 20
    assert lab.named("attribute").status == "ok"
    assert len(json.dumps(lab.cat())) < 200_000
