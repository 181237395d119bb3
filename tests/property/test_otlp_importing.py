from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.otlp_settling import KEPT, settle_spans
from rollscope.importing.otlp_sketch import Sketches
from rollscope.otlp.forms import Sender, SpanForm
from rollscope.otlp.told import meaning_of

START_NS = 1_794_725_158_000_000_000
SENDER = Sender({"service.name": "agents"})
WORDS: list[dict[str, Any]] = [
    {},
    {"rollout_id": 1},
    {"rollout_id": 2, "group_id": "g"},
    {"traj_id": "t", "global_step": 3},
    {"gen_ai.operation.name": "chat"},
    {"gen_ai.operation.name": "invoke_agent"},
    {"global_step": 4},
    {"xtuner.rollout_id": 5},
    {"rollscope.span_type": "pending"},
    {"state_lane_id": "experiment=e/sample=1/session=0/traj=0"},
]


@st.composite
def forests(draw: st.DrawFn) -> list[SpanForm]:
    """Give spans whose parents are any of them, none, or nowhere; some come twice."""
    size = draw(st.integers(1, 8))
    spans = []
    for _ in range(size):
        length = draw(st.integers(0, 3))
        spans.append(
            SpanForm(
                sender=SENDER,
                scope="tests",
                trace_id=bytes([draw(st.integers(1, 2))]) * 16,
                span_id=draw(st.integers(1, size)),
                parent_id=draw(st.integers(0, size + 1)),
                name=draw(st.sampled_from(["x", "generate", "reward", "llm_request"])),
                kind=1,
                start_ns=START_NS + draw(st.integers(0, 3)),
                end_ns=START_NS + 10 + length,
                attrs=draw(st.sampled_from(WORDS)),
                is_open=draw(st.booleans()),
            )
        )
    return spans


def placed(spans: list[SpanForm]) -> set[Any]:
    sketches = Sketches()
    for form in spans:
        if form.parent_id == form.span_id:
            form.parent_id = 0
        sketches.add(form, meaning_of(form), "agents", digest(form), 0)
    settled = settle_spans(sketches, "run")
    return {
        (
            *(form.trace_id, form.span_id, settled.place(at), settled.phase_above(at)),
            *(settled.is_orphan[at], at in settled.made_roots),
        )
        for at, form in enumerate(spans)
        if settled.fate[at] == KEPT
    } | {(made.session.place, made.last_ns) for made in settled.made.values()}


def digest(form: SpanForm) -> int:
    about = (form.parent_id, form.name, form.start_ns, form.end_ns, form.is_open, str(form.attrs))
    return hash(about) & (2**63 - 1)


@given(forests(), st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_where_spans_belong_does_not_hang_on_their_order(
    spans: list[SpanForm], random: Any
) -> None:
    before = placed(spans)
    random.shuffle(spans)
    assert placed(spans) == before


@given(forests())
@settings(max_examples=100, deadline=None)
def test_one_span_of_each_id_is_kept_and_its_session_is_known(spans: list[SpanForm]) -> None:
    sketches = Sketches()
    for form in spans:
        form.parent_id = 0 if form.parent_id == form.span_id else form.parent_id
        sketches.add(form, meaning_of(form), "agents", digest(form), 0)
    settled = settle_spans(sketches, "run")
    kept = [at for at in range(len(spans)) if settled.fate[at] == KEPT]
    keys = [(sketches.trace[at], spans[at].span_id) for at in kept]
    assert len(keys) == len(set(keys))
    assert len(kept) == len({(sketches.trace[at], one.span_id) for at, one in enumerate(spans)})
    own = {spans[at].span_id for at in kept}
    sessions = {settled.place(at).session_id for at in kept} - {None}
    assert sessions <= own | settled.made.keys()
