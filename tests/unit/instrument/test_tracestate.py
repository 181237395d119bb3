from __future__ import annotations

import re

import pytest

import rollscope as rs
from rollscope.instrument.tracestate import format_tracestate, parse_tracestate
from rollscope.model.scope import Scope
from rollscope.testing import capture

TRACE = bytes(range(16))
LEGAL = re.compile(r"[\x21-\x2b\x2d-\x3c\x3e-\x7e]{1,256}")
"""What W3C allows in a value, the blank left out."""


def test_what_is_written_is_read_back() -> None:
    scope = Scope(TRACE, 41, "gsm8k/8,4;2=1 ü%", "g:1", 0xAB, 3)
    header = format_tracestate("my run", scope)
    key, _, value = header.partition("=")
    assert key == "rollscope"
    assert LEGAL.fullmatch(value)
    assert parse_tracestate(header) == ("my run", 41, "gsm8k/8,4;2=1 ü%", "g:1", 0xAB, 3)


def test_a_session_with_an_id_of_all_64_bits_is_read_back() -> None:
    header = format_tracestate("r", Scope(TRACE, None, None, None, 2**64 - 1, None))
    assert parse_tracestate(header) == ("r", None, None, None, 2**64 - 1, None)


def test_what_does_not_fit_is_left_out_whole() -> None:
    scope = Scope(TRACE, 41, "k" * 300, "group", 0xAB, 3)
    header = format_tracestate("r" * 128, scope)
    assert len(header) <= len("rollscope=") + 256
    read = parse_tracestate(header)
    assert read is not None
    assert (read.run, read.session_id, read.task_key, read.group) == (
        "r" * 128,
        0xAB,
        None,
        "group",
    )


def test_members_of_others_stand_behind_ours() -> None:
    others = " congo=t61rcWkgMzE , rollscope=s:1,,rojo=00f0, bad=\u00fc"
    header = format_tracestate("r", Scope(TRACE), others)
    assert header == "rollscope=r:r,congo=t61rcWkgMzE,rojo=00f0"


def test_there_are_never_more_members_or_bytes_than_allowed() -> None:
    others = ",".join(f"k{number}=v" for number in range(100))
    assert len(format_tracestate("r", Scope(TRACE), others).split(",")) == 32
    assert len(format_tracestate("r", Scope(TRACE), "a=" + "x" * 600 + ",b=1")) <= 512


@pytest.mark.parametrize(
    "header", ["", "congo=1", "rollscope=", "rollscope", f"rollscope=r:{'x' * 300}", ",,,="]
)
def test_where_there_is_no_member_of_ours_nothing_is_read(header: str) -> None:
    assert parse_tracestate(header) is None


def test_nonsense_in_our_member_is_no_place() -> None:
    read = parse_tracestate(f"rollscope=s:zz;t:1{'0' * 30};n:1.5;k:%FF;g:\u20ac%20;r")
    assert read is not None
    assert (read.run, read.step, read.session_id, read.sample) == (None,) * 4
    assert read.group is None


def test_a_proxy_that_drops_baggage_does_not_tear_a_session_apart() -> None:
    with capture(run="carried") as run:
        with rs.step(4), rs.task("gsm8k/1"), rs.session(sample=2):
            headers = rs.inject()
        del headers["baggage"]
        with rs.attach(headers), rs.span("remote"):
            pass
        session, remote = run.named("session"), run.named("remote")
    for field in ("step", "task_key", "sample", "session_id", "trace_id"):
        assert getattr(remote, field) == getattr(session, field) is not None


def test_baggage_counts_where_both_are_there() -> None:
    with capture(run="carried") as run:
        with rs.task("short"), rs.session(sample=2):
            headers = rs.inject()
        headers["tracestate"] = "rollscope=k:other;s:1"
        with rs.attach(headers), rs.span("remote"):
            pass
        assert run.named("remote").task_key == "short"
