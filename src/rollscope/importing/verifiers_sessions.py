"""What is said of an episode of verifiers as a whole: its verdict, and the facts of its session."""

from typing import Any, Final, NamedTuple

from rollscope.importing.accounts import Report
from rollscope.importing.values import stable_id
from rollscope.importing.verifiers_fields import Fault, Tokens, last_fault
from rollscope.importing.verifiers_records import Members, Shape, text_of
from rollscope.importing.verifiers_survey import Chosen, Later, Origin, Survey
from rollscope.importing.verifiers_traces import Trace, read_trace
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import STATUS_CODES, Outcome, Status
from rollscope.otlp.aliases import whole_number

__all__ = [
    "Episode",
    "Verdict",
    "judge_episode",
    "read_episode",
    "session_attrs",
    "session_fields",
]

_OK: Final = STATUS_CODES[Status.OK]
_ERROR: Final = STATUS_CODES[Status.ERROR]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_SHORT_BYTES: Final = 128
_MOST_NAMES: Final = 16
_KNOWN: Final = frozenset(
    (
        *("id", "env", "task", "group", "run", "ok", "is_timeout", "errors", "traces"),
        *("num_input_tokens", "num_output_tokens", "num_total_tokens"),
    )
)


class Episode(NamedTuple):
    """An episode, or a trace that stands alone and is one of itself."""

    record: Members
    origin: Origin
    chosen: Chosen
    traces: list[Trace]
    later: list[Later]
    """What was learned of each trace."""
    fault: Fault | None

    @property
    def is_ok(self) -> bool:
        """Whether it went well."""
        return self.record.get("ok") is True

    @property
    def is_running(self) -> bool:
        """Whether it goes on; whole episodes are written when they are over."""
        if self.record.shape is not Shape.TRACE:
            return False
        return not (self.traces[0].is_completed or self.is_ok or self.fault)


class Verdict(NamedTuple):
    """How an episode ended."""

    status: int
    outcome: Outcome | None
    reason: str = ""


def read_episode(record: Members, origin: Origin, chosen: Chosen, survey: Survey) -> Episode:
    """Read all of an episode."""
    records = [record] if record.shape is Shape.TRACE else record.objects("traces")
    traces = [read_trace(each) for each in records]
    later = [_later_of(each, survey) for each in records]
    faults = [trace.fault for trace in traces if trace.fault and not trace.is_ok]
    fault = last_fault(record.get("errors")) or (faults[-1] if faults else None)
    return Episode(record, origin, chosen, traces, later, fault)


def _later_of(record: Members, survey: Survey) -> Later:
    """Give what is known of a trace from itself, and from updates, which are newer."""
    later = Later()
    later.learn(record.get("info"))
    update = survey.later.get(stable_id("trace", record.text("id")))
    if update is not None:
        later.take(update)
    return later


def judge_episode(episode: Episode) -> Verdict:
    """Say how an episode ended; that it was trained on is the last word."""
    if episode.is_running:
        return Verdict(_OPEN, None)
    status = _OK if episode.is_ok else _ERROR
    if episode.chosen.is_effective or any(one.is_effective for one in episode.later):
        return Verdict(status, Outcome.ACCEPTED)
    is_late = episode.record.get("is_timeout") is True
    if is_late or any(trace.is_timeout for trace in episode.traces):
        return Verdict(status, Outcome.TIMEOUT, "timeout")
    if episode.is_ok:
        return Verdict(_OK, None)
    name = episode.fault.type if episode.fault is not None else ""
    return Verdict(_ERROR, Outcome.FAILED, clean_text(name, _SHORT_BYTES) or "failed")


def session_attrs(episode: Episode, report: Report) -> dict[str, Any]:
    """Give the attributes of the session."""
    record, origin, traces = episode.record, episode.origin, episode.traces
    env = record.inside("env")
    is_bare = record.shape is Shape.TRACE
    attrs: dict[str, Any] = {} if is_bare else dict(record.others(_KNOWN))
    told = {
        "session_id": record.text("id"),
        "family": text_of(env.get("name")) or text_of(env.get("id")),
        **_task(record.inside("task")),
        "run": origin.run,
        "work": origin.kind,
        "stop": next((t.attrs["stop"] for t in traces[::-1] if "stop" in t.attrs), ""),
        "turns": sum(trace.turns for trace in traces) or None,
    }
    attrs.update({key: value for key, value in told.items() if value not in ("", None)})
    if origin.run:
        report.name_run(origin.run)
    if origin.step is not None and not origin.is_step_told:
        attrs["step_inferred"] = True
        report.guess("step")
    if episode.fault is not None and not episode.is_ok:
        attrs.update(episode.fault.attrs())
        below = {trace.fault for trace in traces}
        below |= {call.fault for trace in traces for call in trace.calls}
        if episode.fault in below:
            attrs["error.copied"] = True
    tokens = Tokens()
    for trace in traces:
        tokens = tokens.plus(trace.tokens)
    attrs.update(tokens.attrs())
    attrs.update(_reward(traces, report))
    return attrs


def _task(task: dict[str, Any]) -> dict[str, Any]:
    """Say which task it is; what it asks is not kept."""
    data = task.get("data")
    data = data if isinstance(data, dict) else {}
    return {
        "task_type": text_of(task.get("type")),
        "task_name": text_of(data.get("name"))[:_SHORT_BYTES],
        "task_index": whole_number(data.get("idx")),
    }


def _reward(traces: list[Trace], report: Report) -> dict[str, Any]:
    """Give the reward; where several agents were scored, the mean of those that learn."""
    scored = [trace for trace in traces if trace.score.value is not None]
    scored = [trace for trace in scored if trace.is_trainable] or scored
    values = [trace.score.value for trace in scored if trace.score.value is not None]
    attrs: dict[str, Any] = {}
    if values:
        attrs["reward"] = sum(values) / len(values)
    if len(values) > 1:
        attrs["reward_of"] = len(values)
        report.guess("reward of several agents")
    unscored = [name for trace in traces for name in trace.score.unscored]
    if unscored:
        attrs["unscored"] = unscored[:_MOST_NAMES]
    return attrs


def session_fields(episode: Episode, verdict: Verdict) -> dict[str, Any]:
    """Give the fields of the session that few spans have."""
    fields: dict[str, Any] = {}
    if verdict.outcome is not None:
        fields["outcome"] = str(verdict.outcome)
    if verdict.reason:
        fields["reason"] = verdict.reason
    work = episode.record.inside("run").get("work")
    policy = work.get("policy") if isinstance(work, dict) else None
    if isinstance(policy, dict):
        for end in ("start", "end"):
            if (version := whole_number(policy.get(end))) is not None:
                fields[f"version_{end}"] = version
    return fields
