"""A run that is exported as OTLP and imported again is the same run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from rollscope.importing.running import import_run
from rollscope.instrument.tracer import Tracer
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.unit.importing.otlp_lines import ask

if TYPE_CHECKING:
    from rollscope.importing.accounts import Report

FIXTURES = Path(__file__).parents[2] / "fixtures"
# Times are exported on the one clock; processes and events get ids of their own; of spans that end
# at the same time any may count as the one that covers the others.
TABLES = {
    "spans": "SELECT * EXCLUDE (process, recorded_start_ns, recorded_end_ns, attrs, overlap_ns) "
    "FROM spans ORDER BY span_id",
    "unions": "SELECT kind, name, sum(duration_ns - overlap_ns) AS union_ns FROM spans "
    "GROUP BY kind, name ORDER BY kind, name",
    "sessions": "SELECT * EXCLUDE (process, recorded_start_ns, recorded_end_ns, attrs) "
    "FROM sessions ORDER BY session_id",
    "phases": "SELECT session_id, name, sum(duration_ns - overlap_ns) AS union_ns, count(*) AS n "
    "FROM phases GROUP BY session_id, name ORDER BY session_id, name",
    "steps": "SELECT step, start_ns, end_ns, status FROM steps ORDER BY span_id",
    "states": "SELECT lane, name, start_ns, end_ns FROM states ORDER BY span_id",
    "events": "SELECT trace_id, parent_id, session_id, name, step, version, time_ns, attrs "
    "FROM events ORDER BY time_ns, name",
    "processes": "SELECT host, pid, role, rank FROM processes ORDER BY host, pid",
    "metrics": "SELECT type, name, labels, time_ns FROM metrics ORDER BY time_ns, name, labels",
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def round_trip(run: Path, tmp_path: Path) -> tuple[Report, Path]:
    file = tmp_path / "exported.jsonl"
    assert main(["export", str(run), "-o", str(file), "--pending", "--metrics"]) == 0
    return import_run([file], tmp_path / "copy"), tmp_path / "copy"


def check_same(run: Path, copy: Path) -> None:
    for name, query in TABLES.items():
        there, here = ask(copy, query), ask(run, query)
        assert here, name
        assert there == here, name


def test_a_generated_run_comes_back_as_it_was(tmp_path: Path) -> None:
    shape = RunShape(
        steps=2,
        tasks_per_step=4,
        parallel_tools=2,
        nested_share=0.3,
        outliving_share=0.2,
        straggling_share=0.2,
        queue_share=0.3,
        retry_share=0.5,
        late_share=0.3,
        late_verdict_share=0.3,
        unassigned_share=0.2,
        family_share=0.3,
        replicas=2,
        deadline_s=30,
        remote_rewards=True,
        gates=True,
        declares_slots=True,
        loop_lag=True,
    )
    truth = generate_run(tmp_path / "run", shape)
    report, copy = round_trip(tmp_path / "run", tmp_path)
    assert report.counts["spans"] == sum(truth.spans.values())
    check_same(tmp_path / "run", copy)
    query = "SELECT span_id, attrs FROM spans ORDER BY span_id"
    assert ask(copy, query) == ask(tmp_path / "run", query)


def record(tracer: Tracer) -> None:
    """Record what is hard to tell of in other words."""
    tracer.event("alone", version=13, note="<script>alert(1)</script>")
    with tracer.step(4, version=12):
        tracer.event("in.step", tokens_out=3, model="m")
        taken = {"step": "x", "stage": "warm", "uid": "u7", "version": 9, "session_id": "mine"}
        with tracer.span("weights.pack", category="comm", rank=8, **taken):
            pass
        with tracer.phase("generate", model="outside of sessions"):
            pass
        with tracer.task("gsm8k/1", group="g1", family="other"):
            with tracer.session(sample=3, version=12, agent="coder") as session:
                with tracer.phase("generate", model="policy", tokens_out=9, finish="stop"):
                    tracer.event("retry", n=1)
                with pytest.raises(ValueError, match="bad"), tracer.phase("toolcall", tool="sh"):
                    raise ValueError("bad: x")
                with tracer.phase("reward", function="exact", reward=0.25):
                    pass
                session.finish("accepted")
            tracer.annotate(session, reward=0.75, consumed_step=6, curator="anna")
            with pytest.raises(TimeoutError), tracer.session(sample=4):
                raise TimeoutError
            with tracer.session(sample=5) as rejected:
                rejected.finish("rejected", reason="short")
        tracer.gauge("lr", 0.1)
        tracer.count("steps_total")
    with tracer.state("train", lane="trainer_0"), tracer.state("optim", lane="trainer_0"):
        pass


def test_a_recorded_run_comes_back_as_it_was_open_spans_included(tmp_path: Path) -> None:
    tracer = Tracer(run="run", dir=str(tmp_path), role="rollout", rank=3)
    record(tracer)
    with tracer.task("open/2"), tracer.session(sample=1), tracer.phase("generate"):
        tracer.event("in an open phase")
        tracer.flush()
        report, copy = round_trip(tmp_path / "run", tmp_path)
        check_same(tmp_path / "run", copy)
        query = "SELECT facts FROM facts ORDER BY facts"
        (fact,) = ask(copy, query)
    tracer.shutdown()
    assert '"curator":"anna"' in fact["facts"]
    assert report.counts["sessions open"] == 1


def test_an_attribute_with_a_name_that_others_use_stays_what_it_was(tmp_path: Path) -> None:
    tracer = Tracer(run="run", dir=str(tmp_path))
    record(tracer)
    tracer.shutdown()
    _, copy = round_trip(tmp_path / "run", tmp_path)
    query = "SELECT step, version_start, session_id, attrs FROM spans WHERE name = 'weights.pack'"
    (there,), (here,) = ask(copy, query), ask(tmp_path / "run", query)
    assert there == here
    assert (here["step"], here["version_start"]) == (4, here["version_start"])


@pytest.mark.parametrize(
    "sample", ["xtuner_otlp", "rl_insight/otlp_protobuf_json.jsonl", "quirks/otlp_quirks.jsonl"]
)
def test_a_run_of_others_comes_back_as_it_was_imported(tmp_path: Path, sample: str) -> None:
    import_run([FIXTURES / sample], tmp_path / "run")
    _, copy = round_trip(tmp_path / "run", tmp_path)
    query = "SELECT * EXCLUDE (process) FROM spans ORDER BY span_id"
    assert ask(copy, query) == ask(tmp_path / "run", query)


def without(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != name} for row in rows]


def test_a_verdict_that_came_late_is_a_late_fact_again(tmp_path: Path) -> None:
    shape = RunShape(steps=2, tasks_per_step=4, late_verdict_share=1.0, late_share=0.5)
    generate_run(tmp_path / "run", shape)
    _, copy = round_trip(tmp_path / "run", tmp_path)
    query = "SELECT span_id, outcome, consumed_step FROM facts WHERE {} IS NOT NULL ORDER BY ALL"
    for name in ("outcome", "consumed_step"):
        other = "consumed_step" if name == "outcome" else "outcome"
        there = without(ask(copy, query.format(name)), other)
        here = without(ask(tmp_path / "run", query.format(name)), other)
        assert here
        assert there == here
