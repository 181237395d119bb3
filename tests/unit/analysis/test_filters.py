"""The filter language: how it reads, and what it lets through."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rollscope.analysis.filters import FIELDS, FilterError, parse_filter
from rollscope.analysis.matching import matches
from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow
from rollscope.model.kinds import Kind, Outcome, Status

S = 1_000_000_000
GOLDEN = Path(__file__).parents[2] / "golden" / "filters.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))

SESSION = SessionRow(
    span_id=0xAB12,
    host="gpu-07",
    pool="replica-1",
    task_key="swe/42",
    family="swe",
    sample=3,
    step=41,
    start_ns=100 * S,
    end_ns=140 * S,
    status=Status.ERROR,
    outcome=Outcome.FAILED,
    reason="Tool broke",
    version_start=7,
    reward=-0.5,
    tokens_in=50,
    tokens_out=900,
    turns=4,
    attrs={"lang": "python", "depth": 5, "ratio": 0.5, "is_spot": True},
)
SPANS = [
    SpanRow(span_id=2, kind=Kind.PHASE, name="toolcall", detail="browser", start_ns=101 * S),
    SpanRow(span_id=3, kind=Kind.PHASE, name="env", detail="docker", start_ns=102 * S),
    SpanRow(span_id=4, kind=Kind.SPAN, name="http", start_ns=103 * S),
]
PROCESS = ProcessRow(process=0, role="rollout", rank=2)


@pytest.mark.parametrize("case", CASES, ids=[case["filter"] for case in CASES])
def test_a_filter_reads_as_the_golden_file_says(case: dict[str, Any]) -> None:
    if "tree" in case:
        assert msgspec.to_builtins(parse_filter(case["filter"])) == _tupled(case["tree"])
        return
    with pytest.raises(FilterError) as caught:
        parse_filter(case["filter"])
    assert (str(caught.value), caught.value.position) == (case["error"], case["position"])


def _tupled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tupled(inner) for key, inner in value.items()}
    return tuple(_tupled(inner) for inner in value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "phase:toolcall host:gpu-07 ran>30s outcome:failed,timeout reward<=0 -env:swe",
        "phase:env,reward",
        "tool:browser env:docker detail:docker",
        "name:http -phase:http -tool:docker",
        "ran>=40s ran<=40s -ran>40s -ran<40s",
        "step:41 sample:3 attempt:0 version>=7 turns<5 tokens:900 tokens_in<51",
        "consumed:none -consumed:41 waited:none -waited>0s group:none",
        "pool:replica-1 replica:replica-1 task:swe/42 family:swe status:error",
        'reason:"Tool broke"',
        "id:ab12 id:000000000000AB12",
        "attr.lang:python attr.depth:5 attr.depth:5.0 attr.ratio<1 attr.is_spot:true",
        "attr.gone:none -attr.gone:x -attr.lang>3 -attr.is_spot>0",
        "SWE TOOL pyth brows",
        "nothing,swe",
        "role:rollout rank:2",
        "reward:none,-0.5",
    ],
)
def test_lets_through(text: str) -> None:
    assert matches(parse_filter(text), SESSION, SPANS, process=PROCESS)


@pytest.mark.parametrize(
    "text",
    [
        "phase:reward",
        "phase:toolcall phase:reward",
        "tool:docker",
        "-tool:browser",
        "ran<40s",
        "host:gpu",
        "host:GPU-07",
        "consumed:41",
        "waited<1h",
        "outcome:none",
        "attr.lang:none",
        "attr.depth:five",
        "-swe",
        "nothing",
        "id:ab1",
    ],
)
def test_holds_back(text: str) -> None:
    assert not matches(parse_filter(text), SESSION, SPANS, process=PROCESS)


def test_what_is_not_known_matches_no_value() -> None:
    bare = SessionRow(span_id=1, start_ns=0)

    for name in FIELDS.keys() - {"attempt", "id", "status"}:
        assert matches(parse_filter(f"{name}:none"), bare)
        assert not matches(parse_filter(f"-{name}:none"), bare)


def test_an_open_session_has_run_until_now() -> None:
    still_open = SessionRow(span_id=1, start_ns=0, status=Status.OPEN)

    assert matches(parse_filter("ran>9s"), still_open, now_ns=10 * S)
    assert not matches(parse_filter("ran>9s"), still_open)
