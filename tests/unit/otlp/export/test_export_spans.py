from __future__ import annotations

import json
from typing import Any

import pytest

from rollscope.instrument.tracestate import parse_tracestate
from rollscope.otlp.export.spans import SpanMaker
from rollscope.otlp.forms import SpanForm
from tests.unit.otlp.export.rowmaking import SENDER, TRACE, row_of

INTERNAL, CLIENT = 1, 3


def made(**fields: Any) -> SpanForm:
    attrs = json.dumps(fields.pop("attrs", {}))
    return SpanMaker("r1").make(row_of(attrs=attrs, **fields), SENDER)


@pytest.mark.parametrize(
    ("fields", "name", "kind"),
    [
        ({"attrs": {"model": "policy"}}, "chat policy", CLIENT),
        ({}, "chat", CLIENT),
        ({"attrs": {"operation": "text_completion"}}, "text_completion", CLIENT),
        ({"name": "toolcall", "attrs": {"tool": "python"}}, "execute_tool python", INTERNAL),
        ({"name": "reward", "attrs": {"function": "judge"}}, "reward judge", INTERNAL),
        ({"name": "env"}, "env", INTERNAL),
        ({"kind": "task", "name": "task", "family": "gsm8k"}, "rollout gsm8k", INTERNAL),
        ({"kind": "task", "name": "task"}, "rollout", INTERNAL),
        ({"kind": "step", "name": "step", "step": 7}, "step 7", INTERNAL),
        ({"kind": "session", "name": "session"}, "session", INTERNAL),
        ({"kind": "session", "attrs": {"agent": "coder"}}, "invoke_agent coder", INTERNAL),
        ({"kind": "span", "name": "weights.pack"}, "weights.pack", INTERNAL),
        ({"kind": "state", "name": "train", "lane": "trainer_0"}, "train", INTERNAL),
    ],
)
def test_spans_are_named_as_tools_for_models_expect(
    fields: dict[str, Any], name: str, kind: int
) -> None:
    form = made(**fields)
    assert (form.name, form.kind) == (name, kind)


def test_attributes_get_the_names_that_others_know_and_keep_the_rest() -> None:
    form = made(
        attrs={
            "model": "policy",
            "prompt_tokens": 7,
            "tokens_out": 9,
            "finish": "stop",
            "request_id": "q1",
            "runner_wait_s": 0.5,
            "mood": "good",
            "nothing": None,
            "huge": 2**70,
        }
    )
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "policy",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": "q1",
        "gen_ai.conversation.id": "0000000000000002",
        "rollscope.runner_wait_s": 0.5,
        "mood": "good",
        "huge": str(2**70),
    }
    assert {name: form.attrs.get(name) for name in wanted} == wanted
    assert "nothing" not in form.attrs


def test_a_session_says_where_it_belongs_and_what_became_of_it() -> None:
    form = made(
        kind="session",
        name="session",
        span_id=2,
        parent_id=1,
        outcome="accepted",
        step=4,
        consumed_step=6,
        version_start=4,
        task_key="gsm8k/1",
        group_key="g",
        sample=3,
        reward=0.5,
    )
    own = {key.removeprefix("rollscope."): value for key, value in form.attrs.items()}
    assert (own["run"], own["kind"], own["outcome"]) == ("r1", "session", "accepted")
    assert (own["step"], own["consumed_step"], own["staleness"], own["reward"]) == (4, 6, 2, 0.5)
    (event,) = form.events
    assert event.name == "gen_ai.evaluation.result"
    assert event.attrs["gen_ai.evaluation.score.value"] == 0.5
    state = parse_tracestate(form.tracestate)
    assert state == ("r1", 4, "gsm8k/1", "g", 2, 3)


def test_a_task_is_a_root_and_links_to_its_step() -> None:
    maker = SpanMaker("r1")
    maker.steps = {7: (TRACE[::-1], 5)}
    form = maker.make(row_of(kind="task", name="task", step=7, parent_id=9), SENDER)
    assert form.parent_id == 0
    assert form.attrs["rollscope.parent_id"] == f"{9:016x}"
    assert form.links == [f"00-{TRACE[::-1].hex()}-{5:016x}-01"]


@pytest.mark.parametrize(
    ("fields", "code", "kind", "message", "exceptions"),
    [
        ({}, 0, None, "", 0),
        ({"status": "error", "reason": "ValueError: bad: x"}, 2, "ValueError", "bad: x", 1),
        ({"status": "error", "reason": "it broke, badly"}, 2, "error", "it broke, badly", 1),
        ({"status": "error"}, 2, "error", "", 1),
        ({"status": "cancelled"}, 2, "CancelledError", "", 0),
        ({"status": "lost", "reason": "its process died"}, 2, "lost", "its process died", 0),
        ({"kind": "session", "outcome": "timeout"}, 2, "timeout", "", 0),
        ({"kind": "session", "outcome": "rejected", "reason": "short"}, 0, None, "", 0),
    ],
)
def test_how_a_span_ended_is_its_status(
    fields: dict[str, Any], code: int, kind: str | None, message: str, exceptions: int
) -> None:
    form = made(**fields)
    assert (form.status, form.message, form.attrs.get("error.type")) == (code, message, kind)
    assert [event.name for event in form.events] == ["exception"] * exceptions


def test_a_span_that_ends_before_it_starts_has_no_length() -> None:
    assert made(start_ns=5_000, end_ns=4_000).end_ns == 5_000


def test_long_text_is_cut_where_a_limit_is_set() -> None:
    maker = SpanMaker("r1", most_characters=3)
    form = maker.make(row_of(attrs='{"said": "hello", "all": ["hello"]}'), SENDER)
    assert (form.attrs["said"], form.attrs["all"]) == ("hel", ["hel"])


def test_an_open_span_keeps_its_id_and_has_no_length() -> None:
    maker = SpanMaker("r1", pending="rollscope")
    form = maker.make_pending(row_of(end_ns=None, status="open"), SENDER)
    assert (form.span_id, form.parent_id, form.end_ns) == (3, 2, form.start_ns)
    assert form.attrs["rollscope.span_type"] == "pending"
    assert form.status == 0
    assert maker.make(row_of(), SENDER).attrs["rollscope.span_type"] == "span"


@pytest.mark.parametrize(("parent", "told"), [(2, f"{2:016x}"), (None, "0" * 16)])
def test_an_open_span_for_logfire_stands_below_the_real_one(parent: int | None, told: str) -> None:
    maker = SpanMaker("r1", pending="logfire")
    form = maker.make_pending(row_of(parent_id=parent, end_ns=None, status="open"), SENDER)
    assert form.parent_id == 3 != form.span_id
    assert form.attrs["logfire.span_type"] == "pending_span"
    assert form.attrs["logfire.pending_parent_id"] == told
    assert maker.make(row_of(), SENDER).attrs["logfire.span_type"] == "span"
