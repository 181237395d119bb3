import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import CommandError
from rollscope.importing.accounts import Report
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_CACHE = Path(__file__).parents[2] / "fixtures" / "slime" / "rollout_0.trace_timeline_cache.json"
_NAME = "rollout_7.trace_timeline_cache.json"
_T = 1794728721.5


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _span(name: str, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    state = "open_span" if end is None else "closed_span"
    ends = {"start_ts": start, "end_ts": end, "display_end_ts": end or start + 9}
    return {"type": "span", "state": state, "name": name, **ends, "span_id": name, **more}


def _row(*items: Any, **more: Any) -> dict[str, Any]:
    row = {"row_id": 0, "sample_index": 0, "group_index": 0, "status": "completed"}
    times = {"trace_id": "t0", "attempt": 0, "start": _T, "end": _T + 1}
    return {**row, **times, "items": list(items), **more}


def _import(folder: Path, *rows: Any, name: str = _NAME, version: int = 2) -> tuple[Report, Path]:
    cache = folder / name
    stats = {"request_time_stats": {"path": None}} if version == 2 else {}
    cache.write_text(
        json.dumps({"cache_version": version, "pt_path": "x.pt", **stats, "rows": rows})
    )
    return import_run([cache], folder / "run"), folder / "run"


def test_every_sample_row_is_a_session_with_its_fate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_CACHE], run)
    assert [(file.read, file.imported) for file in report.files] == [(4, 4)]
    assert report.counts == {
        "sessions completed": 2,
        "sessions failed": 1,
        "sessions open": 1,
        "tasks": 2,
    }
    rows = _ask(
        run,
        "SELECT sample, task_key, group_key, family, step, status, outcome, reason, reward "
        "FROM sessions ORDER BY sample",
    )
    assert [tuple(row.values()) for row in rows] == [
        (0, "0", "0", "gsm8k", 0, "ok", None, None, 1.0),
        (1, "0", "0", "gsm8k", 0, "ok", None, None, 1.0),
        (2, "1", "1", "gsm8k", 0, "error", "failed", "ValueError", None),
        (3, "1", "1", "gsm8k", 0, "open", None, None, None),
    ]


def test_calls_become_phases_with_known_attributes_and_keep_what_is_below(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_CACHE], run)
    phases = _ask(
        run,
        "SELECT name, tokens_in, tokens_out, queue_ns, end_ns - start_ns AS ns FROM spans "
        "WHERE kind = 'phase' AND sample = 0 ORDER BY start_ns",
    )
    assert [tuple(row.values()) for row in phases] == [
        ("generate", 129, 116, 2_000_000, 30_377_000),
        ("reward", None, None, None, 10_187_000),
    ]
    below = _ask(
        run,
        "SELECT s.name, p.name AS parent, s.attrs->>'prefill_s' AS prefill FROM spans AS s "
        "JOIN spans AS p ON s.parent_id = p.span_id WHERE s.kind = 'span' ORDER BY s.name",
    )
    assert [row["name"] for row in below] == [
        "sglang_pd_decode",
        "sglang_pd_decode_forward",
        "sglang_pd_decode_transfer",
        "sglang_pd_prefill",
        "sglang_pd_prefill_bootstrap_queue",
        "sglang_pd_prefill_forward",
    ]
    assert below[3]["parent"] == "generate"
    assert (below[5]["parent"], below[5]["prefill"]) == ("sglang_pd_prefill", "0.006")


def test_an_open_span_stays_open_wherever_it_is_drawn_to(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_CACHE], run)
    rows = _ask(run, "SELECT kind, end_ns FROM spans WHERE sample = 3 ORDER BY kind")
    assert rows == [{"kind": "phase", "end_ns": None}, {"kind": "session", "end_ns": None}]


def test_an_open_span_is_open_even_if_it_is_said_to_end(tmp_path: Path) -> None:
    item = _span("tool", _T, _T + 1, state="open_span")
    _, run = _import(tmp_path, _row(item, status="pending"))
    rows = _ask(run, "SELECT status, end_ns FROM spans WHERE kind = 'phase'")
    assert rows == [{"status": "open", "end_ns": None}]


def test_spans_that_are_each_others_parents_stand_below_the_session(tmp_path: Path) -> None:
    first = _span("a", _T, _T + 1, parent_span_id="b")
    second = _span("b", _T, _T + 1, parent_span_id="a")
    _, run = _import(tmp_path, _row(first, second, _span("c", _T, _T, parent_span_id="c")))
    rows = _ask(
        run,
        "SELECT s.name, p.kind FROM spans AS s JOIN spans AS p ON s.parent_id = p.span_id "
        "WHERE s.name IN ('a', 'b', 'c') ORDER BY 1",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("a", "session"),
        ("b", "session"),
        ("c", "session"),
    ]


def test_a_span_that_a_finished_sample_left_open_is_lost_not_stuck(tmp_path: Path) -> None:
    _, run = _import(tmp_path, _row(_span("tool", _T, None)))
    rows = _ask(run, "SELECT status, end_ns - start_ns AS ns FROM spans WHERE kind = 'phase'")
    assert rows == [{"status": "lost", "ns": 10**9}]


def test_an_error_that_was_passed_on_is_marked_above_where_it_came_from(tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_run([_CACHE], run)
    rows = _ask(
        run,
        "SELECT kind, name, attrs->>'error.copied' AS copied FROM spans "
        "WHERE status = 'error' ORDER BY kind",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("phase", "reward", None),
        ("session", "session", "true"),
    ]


def test_drawn_copies_are_left_out_and_counted(tmp_path: Path) -> None:
    call = _span("sglang_generate", _T, _T + 1)
    copies = [
        _span(f"sglang_generate [{way}]", _T, _T + 1, span_id=f"sglang_generate:pd:{role}")
        for way, role in (("P", "prefill"), ("D", "decode"))
    ]
    report, run = _import(tmp_path, _row(call, *copies))
    assert report.counts["drawn copies"] == 2
    assert len(_ask(run, "SELECT 1 FROM spans WHERE kind = 'phase'")) == 1


def test_an_end_without_a_start_is_an_event(tmp_path: Path) -> None:
    orphan = {"type": "orphan_end", "state": "orphan_end", "name": "tool", "ts": _T + 0.5}
    _, run = _import(tmp_path, _row(orphan))
    (event,) = _ask(run, "SELECT name, time_ns, attrs->>'source_name' AS what FROM events")
    assert event == {"name": "orphan_end", "time_ns": 1794728722 * 10**9, "what": "tool"}


@pytest.mark.parametrize(
    ("name", "step", "work"),
    [
        ("rollout_12.trace_timeline_cache.json", 12, None),
        ("rollout_eval_12.trace_timeline_cache.json", 12, "eval"),
        ("dump.trace_timeline_cache.json", None, None),
    ],
)
def test_the_name_of_the_file_tells_the_step(
    tmp_path: Path, name: str, step: int | None, work: str | None
) -> None:
    _, run = _import(tmp_path, _row(_span("tool", _T, _T + 1)), name=name)
    assert _ask(run, "SELECT step, attrs->>'work' AS work FROM sessions") == [
        {"step": step, "work": work}
    ]


def test_training_and_evaluation_of_one_step_are_kept_apart(tmp_path: Path) -> None:
    for name, trace in (("rollout_1", "a"), ("rollout_eval_1", "b")):
        document = {"cache_version": 1, "rows": [_row(trace_id=trace)]}
        (tmp_path / f"{name}.trace_timeline_cache.json").write_text(json.dumps(document))
    report = import_run([tmp_path], tmp_path / "run")
    assert report.counts["tasks"] == 2


def test_of_two_copies_of_a_sample_the_newer_stays(tmp_path: Path) -> None:
    old, new = _row(status="aborted"), _row(status="completed", end=_T + 3)
    for step, row in ((9, old), (10, new)):
        document = {"cache_version": 1, "rows": [row]}
        (tmp_path / f"rollout_{step}.trace_timeline_cache.json").write_text(json.dumps(document))
    report = import_run([tmp_path], tmp_path / "run")
    accounts = {Path(file.path).name[:10]: file for file in report.files}
    assert accounts["rollout_9."].set_aside["an older version of a session"].lines == [1]
    rows = _ask(tmp_path / "run", "SELECT step, status FROM sessions")
    assert rows == [{"step": 10, "status": "ok"}]


def test_words_for_an_end_mean_what_slime_means_by_them(tmp_path: Path) -> None:
    words = ("completed", "truncated", "Status.ABORTED", "failed", "odd")
    rows = [
        _row(_span("tool", _T, _T + 1), trace_id=word, sample_index=n, status=word)
        for n, word in enumerate(words)
    ]
    report, run = _import(tmp_path, *rows)
    found = _ask(run, "SELECT status, outcome FROM sessions ORDER BY sample")
    assert [tuple(row.values()) for row in found] == [
        ("ok", None),
        ("ok", None),
        ("cancelled", "cancelled"),
        ("error", "failed"),
        ("ok", None),
    ]
    assert report.unknown_statuses == {"odd": 1}


def test_the_part_of_a_reward_that_is_called_so_is_taken(tmp_path: Path) -> None:
    report, run = _import(tmp_path, _row(reward={"score": 0.5, "format": 1}))
    assert _ask(run, "SELECT reward FROM sessions") == [{"reward": 0.5}]
    assert report.guessed == {"reward out of an object": 1}


def test_what_a_label_says_is_not_kept(tmp_path: Path) -> None:
    _, run = _import(tmp_path, _row(label="the secret answer"))
    (row,) = _ask(run, "SELECT attrs FROM sessions")
    assert "secret" not in row["attrs"]
    assert json.loads(row["attrs"])["label_chars"] == 17


def test_a_dump_is_never_loaded_and_the_script_that_helps_is_named(tmp_path: Path) -> None:
    dump = tmp_path / "rollout_3.pt"
    dump.write_bytes(b"cposix\nsystem\n(S'touch pwned'\ntR.")
    with pytest.raises(CommandError, match=r"trace_timeline_viewer\.py rollout_3\.pt --no-serve"):
        import_run([dump], tmp_path / "run")
    report = import_run([dump, _CACHE], tmp_path / "run")
    told = [warning for warning in report.warnings() if "rollout_3.pt" in warning]
    assert len(told) == 1
    assert report.files[0].read == 0


@pytest.mark.parametrize(
    "row",
    [
        _row(*[None, 7, "x", [], {}, {"name": 5, "start_ts": "x"}]),
        _row(_span("a", _T, _T - 5), _span("b", 1e300, 2), _span("c", float("nan"), None)),
        _row(_span("a", _T, _T + 1, parent_span_id="b"), _span("b", _T, _T, parent_span_id="a")),
        _row(_span("</script>" * 500, _T, _T + 1, attrs=[1], span_id=["x"])),
        _row(_span("a", _T, _T + 1, attrs={"end_attrs": {"x": ["\ud800"], "\ud800": {}}})),
        _row(start=None, end=None, sample_index=True, group_index=[], trace_id={}, source=4),
        _row(_span("a", _T, _T + 1), start="soon", end=[], reward="no", attempt="x", label=[1]),
        _row(_span("a", _T, _T + 1, attrs={"start_attrs": {"x": 10**400}}), group_index="\ud800"),
        _row(_span("a", 12.5, 13.5), start=12.5, end=13.5),
    ],
)
def test_odd_rows_raise_nothing_and_are_accounted_for(tmp_path: Path, row: Any) -> None:
    report, run = _import(tmp_path, row, _row(_span("tool", _T, _T + 1), trace_id="good"))
    (file,) = report.files
    aside = sum(one.count for one in file.set_aside.values())
    assert file.read == 2 == file.imported + file.duplicates + aside
    assert len(_ask(run, "SELECT 1 FROM sessions")) == file.imported
    assert _ask(run, "SELECT 1 FROM sessions WHERE attrs->>'session_id' = 'good'")


def test_a_torn_cache_gives_the_rows_it_has(tmp_path: Path) -> None:
    text = json.dumps({"cache_version": 2, "rows": [_row(trace_id="a"), _row(trace_id="b")]})
    cache = tmp_path / _NAME
    cache.write_text(text[: text.rindex('"items"')])
    report = import_run([cache], tmp_path / "run")
    assert (report.files[0].imported, report.files[0].set_aside["torn"].count) == (1, 1)
