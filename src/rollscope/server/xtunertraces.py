"""What XTuner's own trace viewers were told, in the shapes of both of them."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rollscope.server.xtunerrollouts import OPEN, Rollout, quantile, read_rollouts, read_steps
from rollscope.store.embedded import RunStore

__all__ = ["LATEST_BATCH", "producer_trace", "rollout_trace"]

LATEST_BATCH: Final = "latest-produce-batch"
_ENDED: Final = {"ok": "end", "error": "error", "cancelled": "error"}
_CODES: Final = {"ok": "OK", "error": "ERROR", "cancelled": "ERROR"}
_LABELS: Final = {
    "xtuner.producer.sample_group": "sampler",
    "xtuner.producer.generate_group": "producer.generate",
    "xtuner.producer.put_generated_group": "producer.put",
    "xtuner.rollout_controller.generate": "rollout.generate",
    "xtuner.rollout_engine.generate": "engine.generate",
    "xtuner.judger.judge": "judger",
}


def producer_trace(store: RunStore, scope: str) -> dict[str, Any]:
    """Answer as the viewer of the producer trace did.

    Args:
        store: The run.
        scope: `latest-produce-batch`, or `all`.
    """
    now_s, steps = time.time(), read_steps(store)
    rollouts = read_rollouts(store, steps[-1] if scope == LATEST_BATCH and steps else None)
    timelines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for rollout in rollouts:
        timelines[rollout.trace_id] += _events(rollout)
    rows = [_producer_row(rollout, timelines[rollout.trace_id], now_s) for rollout in rollouts]
    rows.sort(key=lambda row: (row["open_age_s"] or 0.0, row["latest_timestamp_s"]), reverse=True)
    running = [row["open_span"] for row in rows if row["open_span"] is not None]
    count = sum(map(len, timelines.values()))
    return {
        "generated_at_s": now_s,
        "scope": scope,
        "event_count": count,
        "raw_event_count": count,
        "trace_count": len(timelines),
        "open_trace_count": len(running),
        "task_summary": {
            "total_tasks": len(rows),
            "running_tasks": len(running),
            "completed_tasks": len(rows) - len(running),
            "current_stage_counts": dict(Counter(map(_label, running)).most_common()),
        },
        "latest_stage_counts": dict(Counter(row["latest_stage"] for row in rows).most_common()),
        "open_span_summaries": _open_summaries(rollouts, now_s),
        "rows": rows,
        "timelines": timelines,
    }


def _events(rollout: Rollout) -> list[dict[str, Any]]:
    """Make the lines that the rollout's spans would be in a producer trace, by time."""
    row = rollout.row
    found = []
    for span in rollout.spans:
        shared = {
            "trace_id": rollout.trace_id,
            "status": rollout.status,
            "task_name": row["family"],
            "uid": row["uid"],
            "session_uid": row["session_uid"],
            "train_step": row["step"],
            "model_step": row["version_start"],
            "producer_future_step": row["step"],
            "produce_batch_id": row["batch"],
            "worker_rank": span["worker_rank"],
        }
        start = {"timestamp_s": span["start_ns"] / 1e9, "elapsed_s": None, "error_msg": None}
        found.append({**shared, "stage": f"{span['name']}.start", **start})
        how = None if span["end_ns"] is None else _ENDED.get(span["status"])
        if how is not None:
            elapsed_s = (span["duration_ns"] or 0) / 1e9
            end = {"timestamp_s": span["end_ns"] / 1e9, "elapsed_s": elapsed_s}
            told = {"stage": f"{span['name']}.{how}", "error_msg": span["error"]}
            found.append({**shared, **end, **told})
    return sorted(found, key=lambda event: event["timestamp_s"])


def _producer_row(rollout: Rollout, events: list[dict[str, Any]], now_s: float) -> dict[str, Any]:
    opened = [span for span in rollout.spans if span["status"] in OPEN]
    latest = events[-1] if events else None
    return {
        "trace_id": rollout.trace_id,
        "task_name": rollout.row["family"],
        "uid": rollout.row["uid"],
        "status": rollout.status,
        "latest_stage": None if latest is None else latest["stage"],
        "latest_timestamp_s": rollout.row["start_ns"] / 1e9
        if latest is None
        else latest["timestamp_s"],
        "event_count": len(events),
        "open_span": opened[-1]["name"] if opened else None,
        "open_age_s": now_s - opened[-1]["start_ns"] / 1e9 if opened else None,
    }


def _open_summaries(rollouts: Iterable[Rollout], now_s: float) -> list[dict[str, Any]]:
    by_name: dict[str, list[tuple[float, Rollout]]] = defaultdict(list)
    for rollout in rollouts:
        for span in rollout.spans:
            if span["status"] in OPEN:
                by_name[span["name"]].append((now_s - span["start_ns"] / 1e9, rollout))
    summaries = []
    for name, found in by_name.items():
        ages = sorted(age for age, _ in found)
        oldest_s, oldest = max(found, key=lambda each: each[0])
        summaries.append(
            {
                "span": name,
                "open_count": len(ages),
                "oldest_age_s": oldest_s,
                "p50_age_s": quantile(ages, 0.5),
                "p95_age_s": quantile(ages, 0.95),
                "oldest_trace_id": oldest.trace_id,
                "oldest_task_name": oldest.row["family"],
                "oldest_uid": oldest.row["uid"],
            }
        )
    return sorted(summaries, key=lambda each: each["oldest_age_s"], reverse=True)


def rollout_trace(store: RunStore, wanted: str) -> dict[str, Any]:
    """Answer as the viewer of the OpenTelemetry version did.

    Args:
        store: The run.
        wanted: `latest`, `all`, or a step; one that is not there is taken for the latest.
    """
    steps = read_steps(store)
    chosen: int | str = "all"
    if steps and wanted != "all":
        chosen = next((step for step in steps if str(step) == wanted), steps[-1])
    rollouts = read_rollouts(store, chosen if isinstance(chosen, int) else None)
    groups = {rollout.row["group_key"] for rollout in rollouts} - {None}
    shown_steps = {rollout.row["step"] for rollout in rollouts} - {None}
    return {
        "generated_at_s": time.time(),
        "requested_train_step": wanted,
        "selected_train_step": chosen,
        "available_train_steps": steps,
        "sample_count": len(rollouts),
        "group_count": len(groups),
        "step_count": len(shown_steps),
        "status_counts": dict(sorted(Counter(each.status for each in rollouts).items())),
        "stage_duration_summaries": _stage_summaries(rollouts),
        "samples": [_sample(rollout) for rollout in rollouts],
    }


def _sample(rollout: Rollout) -> dict[str, Any]:
    row = rollout.row
    return {
        "rollout_id": row["uid"],
        "group_id": row["group_key"],
        "task_name": row["family"],
        "session_id": row["session_uid"],
        "producer_future_step": row["step"],
        "status": rollout.status,
        "reward": row["reward"],
        "start_time_ns": row["start_ns"],
        "end_time_ns": row["end_ns"],
        "spans": [_sample_span(span) for span in rollout.spans],
    }


def _sample_span(span: Mapping[str, Any]) -> dict[str, Any]:
    length_ns = span["duration_ns"]
    return {
        "span_id": f"{span['span_id']:016x}",
        "parent_span_id": f"{span['parent_id']:016x}" if span["parent_id"] else None,
        "name": span["name"],
        "stage": span["stage"] if span["kind"] == "phase" else span["name"],
        "status": _CODES.get(span["status"], "UNSET"),
        "is_open": span["status"] in OPEN,
        "start_time_ns": span["start_ns"],
        "duration_ms": None if length_ns is None else length_ns / 1e6,
        "error_type": span["error_type"],
        "error_message": span["error"],
    }


def _stage_summaries(rollouts: Iterable[Rollout]) -> list[dict[str, Any]]:
    by_stage: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for rollout in rollouts:
        for span in rollout.spans:
            by_stage[_sample_span(span)["stage"]].append(span)
    summaries = []
    for stage, spans in by_stage.items():
        ended = [span for span in spans if span["status"] not in OPEN]
        lengths = sorted((span["duration_ns"] or 0) / 1e9 for span in ended)
        summaries.append(
            {
                "stage": stage,
                "span_count": len(spans),
                "open_count": len(spans) - len(ended),
                "error_count": sum(span["status"] == "error" for span in spans),
                "avg_duration_s": sum(lengths) / len(lengths) if lengths else None,
                "p50_duration_s": quantile(lengths, 0.5),
                "p95_duration_s": quantile(lengths, 0.95),
                "max_duration_s": lengths[-1] if lengths else None,
            }
        )
    return sorted(summaries, key=lambda each: each["p95_duration_s"] or 0.0, reverse=True)


def _label(name: str) -> str:
    return _LABELS.get(name, name.removeprefix("xtuner."))
