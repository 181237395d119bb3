from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import pytest

from rollscope.errors import SettingError
from rollscope.exposing.remotewrite import RemoteTarget, RemoteWriter
from rollscope.metrics.families import Exposed, Family, FamilyKind, Point
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.sending import Again, ExportFailed
from tests.monitoring.looks import FINISHED, QUEUED, TRACE_ID, look_at
from tests.monitoring.writerequest import read_request, samples_of
from tests.otlp_sink import Reply, http_sink

if TYPE_CHECKING:
    from pathlib import Path

AT_NS = 1_800_000_000_123_456_789
AT_MS = 1_800_000_000_123
STALE_BITS = 0x7FF0000000000002


def test_every_series_of_a_scrape_is_written_with_job_and_instance() -> None:
    writer = RemoteWriter({"job": "rollscope", "instance": "head:7077"})
    shown = samples_of(writer.encode(look_at("first"), AT_NS))
    where = "instance=head:7077,job=rollscope"
    name = "rollscope_session_duration_seconds"
    assert shown == {
        f"rollscope_sessions_finished_total{{{where},outcome=accepted,run=first}}": (7.0, AT_MS),
        f"rollscope_sessions_finished_total{{{where},run=first}}": (1.0, AT_MS),
        f"rollscope_sessions_queued{{{where},run=first}}": (3.0, AT_MS),
        f"{name}_bucket{{{where},le=0.5,run=first}}": (1.0, AT_MS),
        f"{name}_bucket{{{where},le=1.0,run=first}}": (3.0, AT_MS),
        f"{name}_bucket{{{where},le=30.0,run=first}}": (6.0, AT_MS),
        f"{name}_bucket{{{where},le=+Inf,run=first}}": (10.0, AT_MS),
        f"{name}_sum{{{where},run=first}}": (99.5, AT_MS),
        f"{name}_count{{{where},run=first}}": (10.0, AT_MS),
        f"rollscope_run_info{{{where},run=first,state=live}}": (1.0, AT_MS),
    }


def test_an_exemplar_stands_on_its_bucket_and_is_told_once() -> None:
    writer = RemoteWriter({})
    (first,) = writer.encode(look_at("first", at_s=1.5), AT_NS)
    (told,) = [series for series in read_request(first).timeseries if series.exemplars]
    (exemplar,) = told.exemplars
    assert {label.name: label.value for label in told.labels}["le"] == "30.0"
    assert {label.name: label.value for label in exemplar.labels} == {
        "trace_id": TRACE_ID,
        "session": "math/1#0",
    }
    assert (exemplar.value, exemplar.timestamp) == (12.5, 1_500)
    (again,) = writer.encode(look_at("first", at_s=1.5), AT_NS)
    assert not any(series.exemplars for series in read_request(again).timeseries)
    (newer,) = writer.encode(look_at("first", at_s=2.5), AT_NS)
    assert any(series.exemplars for series in read_request(newer).timeseries)


def test_what_families_mean_is_told_now_and_then() -> None:
    writer = RemoteWriter({})
    told = [read_request(writer.encode(look_at("a"), AT_NS)[0]).metadata for _ in range(5)]
    assert [len(each) for each in told] == [4, 0, 0, 0, 4]
    kinds = {each.metric_family_name: (each.type, each.unit) for each in told[0]}
    assert kinds["rollscope_sessions_finished_total"] == (1, "")
    assert kinds["rollscope_session_duration_seconds"] == (3, "seconds")
    assert told[0][0].help == FINISHED.help


def stale_of(bodies: list[bytes]) -> set[str]:
    return {
        name
        for name, (value, _) in samples_of(bodies).items()
        if struct.unpack("<Q", struct.pack("<d", value))[0] == STALE_BITS
    }


def test_a_series_that_vanished_is_ended_once_and_others_are_not() -> None:
    writer = RemoteWriter({})
    both = writer.encode([*look_at("one"), *look_at("two")], AT_NS)
    assert not stale_of(both)
    left = writer.encode(look_at("two"), AT_NS)
    ended = stale_of(left)
    assert len(ended) == 10
    assert all("run=one" in name for name in ended)
    assert not stale_of(writer.encode(look_at("two"), AT_NS))
    assert len(stale_of(writer.encode_ending(AT_NS))) == 10
    assert writer.encode_ending(AT_NS) == []


def test_a_family_that_comes_back_with_other_labels_ends_its_old_series() -> None:
    writer = RemoteWriter({})
    writer.encode([Exposed(QUEUED, [Point(("one",), 1.0)])], AT_NS)
    wider = Family(name=QUEUED.name, kind=FamilyKind.GAUGE, help="", labels=("pool",))
    now = writer.encode([Exposed(wider, [Point(("one",), 1.0)])], AT_NS)
    assert stale_of(now) == {"rollscope_sessions_queued{run=one}"}


def test_nothing_is_said_twice_and_labels_of_ours_give_way() -> None:
    family = Family(name="x", kind=FamilyKind.GAUGE, help="", labels=("job",))
    points = [Point(("train",), 1.0), Point(("train",), 2.0)]
    shown = samples_of(RemoteWriter({"job": "rollscope"}).encode([Exposed(family, points)], AT_NS))
    assert shown == {"x{exported_job=train,job=rollscope}": (1.0, AT_MS)}


def test_hostile_text_and_odd_numbers_pass_through() -> None:
    family = Family(name="x", kind=FamilyKind.GAUGE, help='"\n', labels=("a",))
    texts = ['"\n\\', "\ud800half", "\x00", "é" * 70_000]
    points = [Point((text,), math.nan if place else -math.inf) for place, text in enumerate(texts)]
    shown = samples_of(RemoteWriter({}).encode([Exposed(family, points)], AT_NS))
    assert set(shown) == {f"x{{a={text}}}".replace("\ud800", "?") for text in texts}
    assert [math.isnan(value) for value, _ in shown.values()] == [False, True, True, True]


def test_many_series_go_in_several_requests() -> None:
    points = [Point((f"run-{number}",), 1.0) for number in range(4_500)]
    bodies = RemoteWriter({}).encode([Exposed(QUEUED, points)], AT_NS)
    assert [len(read_request(body).timeseries) for body in bodies] == [2_000, 2_000, 500]
    assert len(samples_of(bodies)) == 4_500


def test_name_and_password_of_the_address_go_into_a_header_only() -> None:
    with http_sink() as sink:
        address = sink.address.replace("://", "://me:pa%20ss@") + "/api/v1/write?tenant=a"
        target = RemoteTarget(address, {"X-Scope-OrgID": "team"})
        sink.replies = [Reply(204, {}), Reply(400, {}, b"out of order sample")]
        target.send(Signal.METRICS, RemoteWriter({}).encode(look_at("a"), AT_NS)[0])
        with pytest.raises(ExportFailed) as refused:
            target.send(Signal.METRICS, b"")
        target.close()
    headers = sink.headers[0]
    assert headers["Authorization"] == "Basic bWU6cGEgc3M="
    assert headers["X-Scope-OrgID"] == "team"
    assert headers["Content-Encoding"] == "snappy"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert "out of order sample" in str(refused.value)
    assert "ss@" not in str(refused.value)


def test_a_token_file_is_read_anew_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with http_sink() as sink:
        target = RemoteTarget(sink.address, {}, file)
        with pytest.raises(Again, match="cannot be read"):
            target.send(Signal.METRICS, b"")
        sink.replies = [Reply(204, {}), Reply(204, {})]
        for token in ("first", "second"):
            file.write_text(f"{token}\n")
            target.send(Signal.METRICS, b"")
        target.close()
    assert [headers["Authorization"] for headers in sink.headers] == [
        "Bearer first",
        "Bearer second",
    ]


@pytest.mark.parametrize("held", ["secret\nsecond line", "secret\u2026"])
def test_a_token_that_no_header_can_hold_is_told_of_without_showing_it(
    tmp_path: Path, held: str
) -> None:
    file = tmp_path / "token"
    file.write_text(held)
    with http_sink() as sink:
        target = RemoteTarget(sink.address, {}, file)
        with pytest.raises(ExportFailed, match="header Authorization") as refused:
            target.send(Signal.METRICS, b"")
        target.close()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("reply", "is_tried_again"),
    [
        (Reply(500, {}), True),
        (Reply(503, {"Retry-After": "3"}), True),
        (Reply(429, {"Retry-After": "3"}), True),
        (Reply(400, {}), False),
        (Reply(401, {}), False),
        (Reply(404, {}), False),
        (Reply(413, {}), False),
    ],
)
def test_busy_receivers_are_asked_again_and_refusals_are_final(
    reply: Reply, is_tried_again: bool
) -> None:
    with http_sink() as sink:
        sink.replies = [reply]
        target = RemoteTarget(sink.address, {})
        with pytest.raises(Again if is_tried_again else ExportFailed) as raised:
            target.send(Signal.METRICS, b"")
        target.close()
    if "Retry-After" in reply.headers:
        assert isinstance(raised.value, Again)
        assert raised.value.after_s == 3.0


@pytest.mark.parametrize("address", ["nowhere", "ftp://a/b", "http:///x", "http://a:b/c"])
def test_what_is_no_address_is_said_without_showing_it(address: str) -> None:
    with pytest.raises(SettingError, match="api/v1/write") as refused:
        RemoteTarget(address, {})
    assert address not in str(refused.value)
