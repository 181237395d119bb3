from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.formats import Place
from rollscope.importing.otlp import OtlpFiles
from rollscope.importing.running import import_run
from rollscope.importing.writing import RunWriter
from tests.unit.importing.otlp_lines import (
    TRACE,
    ask,
    balance,
    imported,
    line,
    span,
    spans_by_name,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHAT = {"gen_ai.operation.name": "chat"}


# Samples


def test_every_sample_of_xtuner_is_a_session_with_its_verdict(tmp_path: Path) -> None:
    report = import_run([FIXTURES / "xtuner_otlp"], tmp_path / "run")
    assert balance(report.files[0]) == (34, 34, 0, 0)
    rows = ask(
        tmp_path / "run",
        "SELECT step, group_key, task_key, family, status, outcome, count(*) AS n FROM sessions "
        "GROUP BY ALL",
    )
    found = {(r["step"], r["group_key"], r["status"], r["outcome"]): r["n"] for r in rows}
    assert found == {
        (1, "103", "ok", None): 3,
        (1, "103", "error", "failed"): 1,
        (3, "300", "ok", None): 2,
        (3, "300", "error", "failed"): 1,
        (3, "300", "cancelled", "cancelled"): 1,
    }
    assert {row["family"] for row in rows} == {"gsm8k"}
    assert {row["task_key"] for row in rows} == {"103", "300"}
    assert report.counts["spans"] == 34


def test_of_calls_of_xtuner_inside_each_other_the_outermost_is_the_phase(tmp_path: Path) -> None:
    import_run([FIXTURES / "xtuner_otlp"], tmp_path / "run")
    rows = ask(tmp_path / "run", "SELECT kind, name, count(*) AS n FROM spans GROUP BY ALL")
    assert {(row["kind"], row["name"]): row["n"] for row in rows} == {
        ("session", "session"): 8,
        ("phase", "generate"): 8,
        ("span", "rollout.worker.generate"): 8,
        ("phase", "reward"): 5,
        ("phase", "judge_http"): 5,
    }
    rewards = ask(tmp_path / "run", "SELECT reward FROM sessions WHERE reward IS NOT NULL")
    assert sorted(row["reward"] for row in rewards) == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_an_error_that_was_copied_up_is_blamed_on_the_deepest_span(tmp_path: Path) -> None:
    report = import_run([FIXTURES / "xtuner_otlp"], tmp_path / "run")
    rows = ask(
        tmp_path / "run",
        "SELECT name, count(*) AS n FROM spans WHERE status = 'error' "
        "AND attrs ->> 'error.copied' IS NULL GROUP BY name",
    )
    assert rows == [{"name": "rollout.worker.generate", "n": 2}]
    assert report.counts["errors copied from below"] == 4


def test_every_quirk_is_read(tmp_path: Path) -> None:
    report = import_run([FIXTURES / "quirks" / "otlp_quirks.jsonl"], tmp_path / "run")
    (file,) = report.files
    assert balance(file) == (5, 4, 0, 1)
    assert file.set_aside["has no valid trace and span id"].lines == [5]
    spans = spans_by_name(tmp_path / "run")
    session = spans["trajectory"]
    assert session["span_id"] == 0x00F1E2D3C4B5A697  # upper case
    assert session["trace_id"].hex() == "9c1f5f0f6be34d0aa3b1c2d3e4f50617"
    assert (session["kind"], session["step"], session["task_key"]) == ("session", 7, "t_0")
    assert (session["outcome"], session["reason"]) == ("failed", "env crashed")  # by name
    assert (session["start_ns"], session["end_ns"]) == (1794725158000000123, 1794725162000000456)
    generate = spans["generate"]  # base64
    assert (generate["kind"], generate["parent_id"]) == ("phase", session["span_id"])
    assert (generate["tokens_in"], generate["tokens_out"]) == (104, 328)
    reward = spans["reward"]  # pending, as Logfire tells of it
    assert (reward["span_id"], reward["parent_id"]) == (0x00F1E2D3C4B5A699, session["span_id"])
    assert (reward["kind"], reward["status"]) == ("phase", "open")
    assert (spans["tool"]["status"], spans["tool"]["end_ns"]) == ("open", None)  # end 0


def test_lanes_operations_and_sessions_of_rl_insight_are_told_apart(tmp_path: Path) -> None:
    source = FIXTURES / "rl_insight" / "otlp_protobuf_json.jsonl"
    report = import_run([source], tmp_path / "run")
    assert balance(report.files[0]) == (12, 12, 0, 0)
    rows = ask(
        tmp_path / "run",
        "SELECT kind, name, lane, count(*) AS n FROM spans WHERE kind <> 'session' GROUP BY ALL",
    )
    assert {(row["kind"], row["name"], row["lane"]): row["n"] for row in rows} == {
        ("state", "generate", "replica_0"): 2,
        ("state", "compute_log_prob", "actor_worker_0"): 2,
        ("state", "update_policy", "actor_worker_0"): 2,
        ("span", "update_model", "16030"): 2,
        ("phase", "generate", None): 3,
    }
    told, guessed = ask(
        tmp_path / "run",
        "SELECT task_key, sample, step, group_key, status, attrs ->> 'end_guessed' AS is_guessed, "
        "(SELECT count(*) FROM phases AS p WHERE p.session_id = s.session_id) AS turns_seen "
        "FROM sessions AS s ORDER BY task_key",
    )
    assert (told["task_key"], told["sample"], told["step"], told["group_key"]) == ("1", 0, 1, "u1")
    assert (told["turns_seen"], told["is_guessed"]) == (2, None)
    assert (guessed["task_key"], guessed["turns_seen"], guessed["is_guessed"]) == ("2", 1, "true")
    assert guessed["status"] == "ok"


# Others


def test_an_import_goes_on_after_it_was_put_away(tmp_path: Path) -> None:
    report = Report(run="run")
    importer = OtlpFiles(RunWriter(tmp_path, report, {}), report)
    place = Place(FileAccount(path="x", format="otlp"), 0, 1)
    both = [line(span("root", 1), span("chat", 2, 1, attrs=CHAT)), line(span("root", 1))]
    for raw in [json.dumps(one).encode() for one in both]:
        importer.survey(place, raw)
    importer.settle()
    importer = pickle.loads(pickle.dumps(importer))  # noqa: S301  (of our own)
    answers = [importer.take(place, json.dumps(one).encode()) for one in both]
    assert answers == ["", "duplicate"]


def test_a_step_of_roll_holds_trajectories_and_their_turns(tmp_path: Path) -> None:
    said = {"traj_id": "t_0_3", "traj_group_id": "t_0", "env_id": 1}
    _, run = imported(
        tmp_path,
        line(
            span("step", 4, 2),
            span("generate", 3, 2),
            span("trajectory", 2, 1, attrs=said),
            span("train", 5, 1),
            span("pipeline_step", 1, attrs={"global_step": "7"}),
            scope="roll.utils.tracing",
        ),
    )
    rows = ask(run, "SELECT kind, name, step, session_id FROM spans ORDER BY span_id")
    assert [tuple(row.values()) for row in rows] == [
        ("step", "step", 7, None),
        ("session", "session", 7, 2),
        ("phase", "generate", 7, 2),
        ("phase", "toolcall", 7, 2),
        ("span", "train", 7, None),
    ]


def test_requests_of_engines_are_no_sessions(tmp_path: Path) -> None:
    _, run = imported(
        tmp_path,
        line(span("llm_request", 1, kind=2, attrs={"gen_ai.latency.e2e": 1.5}), scope="vllm.x"),
        line(
            span("decode Req 5", 2, traceId=TRACE[::-1], attrs={"module": "sglang::request"}),
            span("forward", 3, 2, traceId=TRACE[::-1]),
        ),
    )
    rows = spans_by_name(run)
    assert {row["session_id"] for row in rows.values()} == {None}
    assert rows["llm_request"]["attrs"]["e2e_s"] == 1.5
    assert rows["decode Req 5"]["category"] == "compute"


def test_a_request_of_an_engine_joins_the_call_that_made_it_by_its_id(tmp_path: Path) -> None:
    alone: dict[str, Any] = {"traceId": TRACE[::-1]}
    report, run = imported(
        tmp_path,
        line(
            span("llm_request", 3, attrs={"gen_ai.request.id": "cmpl-7"}, **alone),
            span("prefill", 4, 3, **alone),
            scope="vllm.x",
        ),
        line(span("other", 5, attrs={"rid": "cmpl-8"}, traceId="0" * 31 + "5"), scope="sglang"),
        line(span("chat", 2, 1, attrs={**CHAT, "gen_ai.response.id": "cmpl-7"}), span("root", 1)),
    )
    rows = spans_by_name(run)
    assert (rows["llm_request"]["session_id"], rows["llm_request"]["parent_id"]) == (1, 2)
    assert (rows["prefill"]["session_id"], rows["prefill"]["parent_id"]) == (1, 3)
    assert rows["llm_request"]["attrs"]["source_trace_id"] == TRACE[::-1]
    assert rows["other"]["session_id"] is None
    assert report.counts["requests attached by their ids"] == 1
