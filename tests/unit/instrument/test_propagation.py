from __future__ import annotations

import contextvars
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import rollscope as rs
from rollscope.instrument.propagation import Attachment
from rollscope.testing import Capture, SequentialIds, capture

if TYPE_CHECKING:
    from collections.abc import Iterator

REMOTE = "00-0102030405060708090a0b0c0d0e0f10-00f067aa0ba902b7-01"


@pytest.fixture
def run() -> Iterator[Capture]:
    with capture(ids=SequentialIds(), run="carried") as captured:
        yield captured


# Inject and attach


def test_a_span_goes_on_where_its_headers_are_attached(run: Capture) -> None:
    task = rs.task("gsm8k/8,4;2=1 ü", group="g")
    with rs.step(41), task, rs.session(sample=3), rs.phase("reward"):
        headers = rs.inject()
    with rs.attach(headers) as remote:
        assert rs.current() is remote
        with rs.span("remote work"):
            pass
    assert not rs.current()
    phase, work = run.named("reward"), run.named("remote work")
    assert (work.trace_id, work.parent_id) == (phase.trace_id, phase.span_id)
    for field in ("step", "task_key", "group", "sample", "session_id"):
        assert getattr(work, field) == getattr(phase, field) is not None


def test_headers_are_plain_ascii_text(run: Capture) -> None:
    with rs.task('ü,;= "\n\0', group="\ud800"), rs.session():
        headers = rs.inject()
    assert set(headers) == {"traceparent", "tracestate", "baggage"}
    for value in headers.values():
        assert value.isascii()
        assert value.isprintable()
        assert " " not in value


def test_a_carrier_is_filled_and_its_new_headers_given_back(run: Capture) -> None:
    carrier = {"accept": "*/*"}
    with rs.span("x") as span:
        headers = rs.inject(carrier)
    assert headers == {"traceparent": str(span.ref), "tracestate": "rollscope=r:carried"}
    assert carrier == {"accept": "*/*", **headers}


def test_baggage_of_others_is_kept_and_ours_replaced(run: Capture) -> None:
    carrier = {"baggage": "user=alice;p=1 , rollscope.task=old,,key = v"}
    with rs.task("new"):
        rs.inject(carrier)
    members = [member.strip() for member in carrier["baggage"].split(",")]
    assert members == ["user=alice;p=1", "key = v", "rollscope.task=new"]


def test_a_plain_span_adds_no_baggage(run: Capture) -> None:
    with rs.span("x"):
        assert "baggage" not in rs.inject()
        assert rs.inject({"baggage": "a=1"})["baggage"] == "a=1"


def test_nothing_is_injected_where_there_is_no_span(run: Capture) -> None:
    carrier = {"baggage": "a=1"}
    assert rs.inject() == {}
    assert rs.inject(carrier) == {}
    assert carrier == {"baggage": "a=1"}


def test_a_very_long_task_key_does_not_make_headers_too_long(run: Capture) -> None:
    with rs.task("ü" * 1_000_000, group="x" * 1_000_000):
        assert sum(map(len, rs.inject().values())) < 4096


def test_a_carrier_with_odd_values_is_borne(run: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    for odd in (None, b"a=1", 7, ["a"]):
        with rs.task("t"):
            carrier: dict[str, Any] = {"baggage": odd}
            rs.inject(carrier)
            assert carrier["traceparent"] == str(rs.current().ref)


def test_headers_of_any_client_are_attached(run: Capture) -> None:
    with rs.attach({"Traceparent": REMOTE.upper(), "Tracestate": "x=1"}) as remote:
        with rs.span("here"):
            pass
        assert str(remote.ref) == REMOTE
    assert run.named("here").parent_id == "00f067aa0ba902b7"
    assert run.named("here").trace_id == "0102030405060708090a0b0c0d0e0f10"


@pytest.mark.parametrize("name", ["_ray_trace_ctx", "_xtuner_trace_carrier", "_otel_ctx"])
def test_headers_are_found_where_other_frameworks_put_them(run: Capture, name: str) -> None:
    with rs.attach({"reward": 0.5, name: {"traceparent": REMOTE}}), rs.span("inner"):
        pass
    assert run.named("inner").parent_id == REMOTE.split("-")[2]


def test_an_environment_is_a_carrier_too(run: Capture) -> None:
    environ = {"TRACEPARENT": REMOTE, "BAGGAGE": "rollscope.step=7", "PATH": "/bin"}
    with rs.attach(environ), rs.span("here"):
        pass
    assert run.named("here").step == 7


def test_an_attachment_without_with_stays(run: Capture) -> None:
    def work() -> None:
        rs.attach({"traceparent": REMOTE})
        with rs.span("one"):
            pass
        with rs.span("two"):
            pass

    contextvars.copy_context().run(work)
    assert run.named("one").parent_id == run.named("two").parent_id == "00f067aa0ba902b7"
    assert not rs.current()


def test_leaving_an_attachment_brings_back_what_was_current(run: Capture) -> None:
    with rs.span("outer") as outer:
        with rs.attach({"traceparent": REMOTE}):
            pass
        assert rs.current() is outer


def test_an_attachment_left_out_of_order_disturbs_nothing(run: Capture) -> None:
    attachment = rs.attach({"traceparent": REMOTE})
    with rs.span("inner") as inner:
        attachment.__exit__(None, None, None)
        assert rs.current() is inner


def test_the_verdict_on_a_remote_span_is_a_late_fact(run: Capture) -> None:
    with rs.span("here") as span:
        headers = rs.inject()
    with rs.attach(headers) as remote:
        remote.set(seen=1)
        rs.annotate(remote, judged=2)
    assert run.named("here").attrs == {"seen": 1, "judged": 2}
    assert remote.ref == span.ref


@pytest.mark.parametrize(
    "carrier",
    [
        {},
        {"traceparent": ""},
        {"traceparent": "rubbish"},
        {"traceparent": None},
        {"traceparent": b"bytes"},
        {"traceparent": 7},
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-00"},
        {"traceparent": REMOTE + "\nX-Injected: 1"},
        {7: 8, None: None},
        {"baggage": "rollscope.step=1"},
    ],
    ids=str,
)
def test_headers_without_a_valid_context_attach_nothing(run: Capture, carrier: Any) -> None:
    with rs.span("outer") as outer, rs.attach(carrier):
        assert rs.current() is outer


def test_an_invalid_traceparent_is_told_once(
    run: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        rs.attach({"traceparent": "x" * 10_000})
    assert len(caplog.messages) == 1
    assert len(caplog.messages[0]) < 400


@pytest.mark.parametrize(
    ("baggage", "expected"),
    [
        ("", {}),
        ("rollscope.step=37", {"step": 37}),
        ("rollscope.step=%33%37", {"step": 37}),
        ("rollscope.step = 37", {}),
        ("rollscope.step=37;meta=1", {"step": 37}),
        ("rollscope.step=thirty", {}),
        ("rollscope.step=" + "9" * 5000, {}),
        ("rollscope.step=" + str(2**63), {}),
        ("rollscope.step=" + str(2**63 - 1), {"step": 2**63 - 1}),
        ("rollscope.step=1e3", {}),
        ("rollscope.session=00000000000000ff", {"session_id": "00000000000000ff"}),
        ("rollscope.session=-1", {}),
        ("rollscope.session=0", {}),
        ("rollscope.session=zz", {}),
        ("rollscope.session=" + "f" * 16, {"session_id": "f" * 16}),
        ("rollscope.session=" + "f" * 17, {}),
        ("rollscope.task=%00%ff%", {"task_key": "\0\ufffd%"}),
        ("rollscope.task=", {"task_key": ""}),
        ("rollscope.sample=3,rollscope.group=a%2Cb", {"sample": 3, "group": "a,b"}),
        ("rollscope.unknown=1,=,,;,rollscope.", {}),
        ("a=" + "x" * 10_000 + ",rollscope.step=1", {}),
        ("a=" + "x" * (8192 - 20) + ",rollscope.step=1234", {}),
        ("rollscope.step=1,a=" + "x" * 10_000, {"step": 1}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_baggage_from_outside_is_believed_only_where_it_makes_sense(
    run: Capture, baggage: str, expected: dict[str, Any]
) -> None:
    with rs.attach({"traceparent": REMOTE, "baggage": baggage}), rs.span("here"):
        pass
    span = run.named("here")
    fields = ("step", "task_key", "group", "sample", "session_id")
    assert {f: getattr(span, f) for f in fields} == {**dict.fromkeys(fields), **expected}


def test_hostile_text_in_baggage_is_only_text(run: Capture) -> None:
    key = "<script>alert(1)</script>\x1b[31m" + "é" * 2000
    baggage = f"rollscope.task={quote(key)[:6000]}"
    with rs.attach({"traceparent": REMOTE, "baggage": baggage}), rs.span("here"):
        pass
    found = run.named("here").task_key
    assert found is not None
    assert found.startswith("<script>")
    assert len(found.encode()) <= 512


def test_an_attachment_of_nothing_gives_the_false_span() -> None:
    with Attachment(None, rs.current()) as span:
        assert not span


def test_recording_starts_under_the_span_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEPARENT", REMOTE)
    monkeypatch.setenv("BAGGAGE", "rollscope.task=t")

    def work() -> tuple[str | None, str | None]:
        with capture() as run:
            with rs.span("here"):
                pass
            return run.named("here").parent_id, run.named("here").task_key

    assert contextvars.copy_context().run(work) == ("00f067aa0ba902b7", "t")


# Carry


def test_a_carried_call_runs_under_the_span_it_was_made_in(run: Capture) -> None:
    def work(number: int, *, name: str) -> int:
        with rs.span(name):
            return number + 1

    with rs.session() as session:
        carried = rs.carry(work)
        thread = threading.Thread(target=carried, args=(1,), kwargs={"name": "in thread"})
        thread.start()
        thread.join()
        bare = threading.Thread(target=work, args=(1,), kwargs={"name": "not carried"})
        bare.start()
        bare.join()
        with ThreadPoolExecutor(2) as pool:
            assert pool.submit(carried, 5, name="in pool").result() == 6
    assert session.ref is not None
    parent = run.named("session").span_id
    assert run.named("in thread").parent_id == parent
    assert run.named("in pool").parent_id == parent
    assert run.named("not carried").parent_id is None


def test_a_carried_call_can_run_in_many_threads_at_once(run: Capture) -> None:
    together = threading.Barrier(4)

    def work(number: int) -> None:
        with rs.span(f"w{number}"):
            together.wait(10)

    with rs.span("maker") as maker:
        carried = rs.carry(work)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(carried, range(4)))
        assert rs.current() is maker
    parent = run.named("maker").span_id
    assert [run.named(f"w{n}").parent_id for n in range(4)] == [parent] * 4


def test_a_carried_call_passes_errors_on(run: Capture) -> None:
    def fails() -> None:
        raise KeyError("no")

    with rs.span("x"), pytest.raises(KeyError):
        rs.carry(fails)()


def add_under_span(a: int, b: int) -> tuple[int, str]:
    with rs.span("pickled"):
        return a + b, str(rs.inject().get("traceparent", ""))


def test_a_carried_call_can_be_pickled_and_goes_on_under_the_same_span(run: Capture) -> None:
    with rs.task("t") as task:
        data = pickle.dumps(rs.carry(add_under_span))
    total, traceparent = pickle.loads(data)(1, 2)  # noqa: S301  (our own bytes)
    assert total == 3
    assert task.ref is not None
    assert task.ref.trace_id.hex() in traceparent
    assert run.named("pickled").parent_id == run.named("task").span_id
    assert run.named("pickled").task_key == "t"


def test_a_pickled_call_starts_to_record_where_nothing_does(tmp_path: Any) -> None:
    rs.init(run="carried", dir=tmp_path)
    with rs.span("x"):
        data = pickle.dumps(rs.carry(add_under_span))
    rs.shutdown()
    assert not rs.enabled()
    assert pickle.loads(data)(1, 2)[0] == 3  # noqa: S301  (our own bytes)
    assert rs.enabled()
    assert rs.shutdown()
    assert len(list(tmp_path.glob("carried/log/*.rsl"))) == 2


def test_carrying_is_the_function_itself_when_nothing_is_recorded() -> None:
    assert rs.carry(add_under_span) is add_under_span


# Environment of a child


def test_a_child_environment_names_the_run_and_the_span(run: Capture, tmp_path: Any) -> None:
    with rs.task("t") as task:
        env = rs.child_env({"HOME": "/root"})
    assert env["HOME"] == "/root"
    assert env["ROLLSCOPE_RUN"] == "carried"
    assert env["ROLLSCOPE_DIR"] == os.path.abspath("runs")
    assert env["TRACEPARENT"] == str(task.ref)
    assert env["BAGGAGE"] == "rollscope.task=t"
    assert "ROLLSCOPE_RUN" not in os.environ


def test_a_child_environment_begins_with_our_own(
    run: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    env = rs.child_env()
    assert env["SOMETHING"] == "else"
    assert "TRACEPARENT" not in env


def test_a_child_environment_keeps_baggage_of_others(
    run: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rs.task("t"):
        env = rs.child_env({"BAGGAGE": "user=alice"})
    assert set(env["BAGGAGE"].split(",")) == {"user=alice", "rollscope.task=t"}


def test_a_child_environment_can_be_handed_to_a_program(run: Capture) -> None:
    with rs.task("nul \0 and \ud800"):
        for name, value in rs.child_env({}).items():
            assert "\0" not in value
            os.fsencode(name + value)


def test_a_child_environment_is_untouched_when_nothing_is_recorded() -> None:
    assert rs.child_env({"A": "b"}) == {"A": "b"}
    assert rs.child_env() == dict(os.environ)
