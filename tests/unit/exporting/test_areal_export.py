"""Sessions as AReaL writes them."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rollscope as rs
from rollscope.cli.main import main
from rollscope.importing.running import import_run
from rollscope.integrations.areal import __main__ as areal_tools
from rollscope.store.embedded import RunStore

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_SAMPLE = _FIXTURES / "areal" / "session_tracer"
_EXTRA = {"run_id", "ended_ts", "global_step", "version_start", "version_end", "error", "source_id"}


def _export(run: Path, *more: str) -> dict[str, list[str]]:
    out = run.parent / f"{run.name}-session_tracer"
    assert main(["export", str(run), "--format", "areal", "-o", str(out), *more]) == 0
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.read_text().splitlines() for path in files}


def _read(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_what_came_from_areal_goes_back_letter_by_letter(tmp_path: Path) -> None:
    import_run([_SAMPLE], tmp_path / "r")
    files = _export(tmp_path / "r", "--strict")
    assert sorted(files) == ["rollout/sessions-r0.jsonl", "rollout/sessions-r3.jsonl"]
    for name, lines in files.items():
        assert sorted(lines) == sorted((_SAMPLE / name).read_text().splitlines())
    assert [len(lines) for lines in files.values()] == [36, 28]


def test_keys_of_ours_come_behind_those_of_areal(tmp_path: Path) -> None:
    import_run([_SAMPLE], tmp_path / "r")
    strict = _export(tmp_path / "r", "--strict")
    for name, lines in _export(tmp_path / "r").items():
        for line, plain in zip(lines, strict[name], strict=True):
            record = json.loads(line)
            classic = [key for key in record if key not in _EXTRA]
            assert list(record)[: len(classic)] == classic
            assert json.dumps({key: record[key] for key in classic}, ensure_ascii=False) == plain
            assert record["run_id"] == "r"
            assert not {"error", "source_id"} & record.keys()


@pytest.mark.parametrize("name", ["areal_restart_and_duplicate", "areal_torn_last_line"])
def test_lives_and_what_is_left_of_torn_files_go_back(tmp_path: Path, name: str) -> None:
    source = _FIXTURES / "quirks" / f"{name}.jsonl"
    import_run([source], tmp_path / "r")
    (lines,) = _export(tmp_path / "r", "--strict").values()
    whole = {line for line in source.read_text().splitlines() if line.endswith("}")}
    assert sorted(lines) == sorted(whole)


def _record(path: Path) -> None:
    rs.init(run=path.name, dir=path.parent, role="rollout", rank=2)
    finishes: list[tuple[str, str | None]] = [
        ("accepted", None), ("rejected", "filtered"), ("rejected", "returned_none"),
        ("timeout", "deadline"), ("cancelled", None), ("dropped", "stale"),
    ]  # fmt: skip
    with rs.step(7, version=3):
        for number, (outcome, reason) in enumerate(finishes):
            with rs.task(f"gsm8k/{number}"), rs.session(sample=0, version=3, turns=2) as session:
                with rs.phase("generate", tokens_out=5), rs.phase("generate", tokens_out=6):
                    pass
                with rs.phase("think"):
                    pass
                session.finish(outcome, reason=reason)
        with rs.task("plain"), rs.session():
            pass
        with pytest.raises(ValueError, match="boom"), rs.task("bad"), rs.session():
            raise ValueError("boom")
    rs.shutdown()


def test_sessions_of_ours_are_told_in_words_of_areal(tmp_path: Path) -> None:
    before = time.time()
    _record(tmp_path / "r")
    files = _export(tmp_path / "r")
    assert list(files) == ["rollout/sessions-r2.jsonl"]
    records = {line["source_id"]: line for line in _read(files["rollout/sessions-r2.jsonl"])}
    said = {key: (one["status"], one.get("reason")) for key, one in records.items()}
    assert said == {
        "gsm8k/0#0": ("accepted", None),
        "gsm8k/1#0": ("rejected", "rejected"),
        "gsm8k/2#0": ("rejected", "returned_none"),
        "gsm8k/3#0": ("failed", "deadline"),
        "gsm8k/4#0": ("failed", "cancelled"),
        "gsm8k/5#0": ("dropped", "stale"),
        "plain#0": ("accepted", None),
        "bad#0": ("failed", "workflow_exception"),
    }
    one = records["gsm8k/0#0"]
    assert list(one) == [
        "task_id", "session_id", "rank", "role", "status", "submit_ts", "finalized_ts", "total_s",
        "generate_s", "phases", "counters", "run_id", "ended_ts", "global_step", "version_start",
        "source_id",
    ]  # fmt: skip
    assert list(one["phases"]) == ["generate", "think"]
    assert len(one["phases"]["generate"]) == 2
    assert one["counters"] == {"turns": 2, "output_tokens": 11}
    assert (one["global_step"], one["version_start"], one["rank"]) == (7, 3, 2)
    assert before <= one["submit_ts"] <= one["ended_ts"] <= time.time()
    assert len(repr(one["submit_ts"]).partition(".")[2]) <= 7
    assert records["bad#0"]["error"] == "boom"
    assert len({one["session_id"] for one in records.values()}) == 8
    assert all(0 < one["task_id"] < 2**53 for one in records.values())


def test_words_of_other_tools_are_not_taken_for_words_of_areal(tmp_path: Path) -> None:
    import_run([_FIXTURES / "xtuner_otlp"], tmp_path / "r")
    records = [one for lines in _export(tmp_path / "r").values() for one in _read(lines)]
    said = Counter((one["status"], one.get("reason")) for one in records)
    assert said == {("accepted", None): 5, ("failed", "workflow_exception"): 2,
                    ("failed", "cancelled"): 1}  # fmt: skip


def test_an_open_session_is_pending_and_its_phase_has_no_end(tmp_path: Path) -> None:
    rs.init(run="r", dir=tmp_path)
    with rs.task("5"), rs.session(sample=0, session_id="11"), rs.phase("reward"):
        rs.flush()
        (lines,) = _export(tmp_path / "r", "--strict").values()
    rs.shutdown()
    (record,) = _read(lines)
    assert (record["task_id"], record["session_id"], record["status"]) == (5, 11, "pending")
    assert record["phases"]["reward"][0]["end_ts"] is None
    assert not {"finalized_ts", "total_s", "reward_s", "reason"} & record.keys()


def test_roles_of_any_name_get_files_of_their_own(tmp_path: Path) -> None:
    roles = ("a/b", "c/b", "../x", "..", "\x00")
    record = {"task_id": 1, "session_id": 1, "rank": 0, "status": "pending", "submit_ts": 1.8e9}
    texts = [json.dumps(record | {"role": role}) for role in roles] + [json.dumps(record)]
    (tmp_path / "in.jsonl").write_text("\n".join(texts) + "\n")
    import_run([tmp_path / "in.jsonl"], tmp_path / "r")
    files = _export(tmp_path / "r", "--strict")
    told = [line.get("role") for lines in files.values() for line in _read(lines)]
    assert sorted(map(str, told)) == sorted(map(str, (*roles, None)))
    assert len(files) == 6
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "r", "r-session_tracer"}


def test_tools_shaped_like_areals_read_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _record(tmp_path / "r")
    _export(tmp_path / "r")
    page = tmp_path / "page.html"
    folder = str(tmp_path / "r-session_tracer")
    assert areal_tools.main(["plot", folder, "-B", "2", "--output", str(page)]) == 0
    assert page.read_text().startswith("<!")
    capsys.readouterr()
    assert main(["export", str(tmp_path / "r"), "--format", "areal", "-o", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8
    again = import_run([folder], tmp_path / "back")
    assert again.files[0].imported == 8
    with RunStore(tmp_path / "back") as store:
        rows = store.query("SELECT outcome, count(*) AS n FROM sessions GROUP BY 1").to_pylist()
    assert {row["outcome"]: row["n"] for row in rows} == {
        "accepted": 2, "rejected": 2, "failed": 3, "dropped": 1,
    }  # fmt: skip
