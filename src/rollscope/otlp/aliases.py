"""The names under which others tell what we know by one name, as data.

Of several names that are present the first one of its row counts. Attributes that are known under
an alias are kept under the canonical name, all others as they are.
"""

from typing import Any, Final, NamedTuple

from rollscope.otlp.forms import Attrs

__all__ = ["CONTENT_PREFIXES", "Meaning", "first_number", "read_aliases", "whole_number"]

PLACES: Final[dict[str, tuple[str, ...]]] = {
    "run": ("rollscope.run", "run.id", "run_id", "wandb.run_id"),
    "task_key": ("rollscope.task_key", "task.key", "task_id"),
    "group": (
        "rollscope.group",
        "xtuner.group_id",
        "traj_group_id",
        "group.id",
        "group_id",
        "group_index",
    ),
    "session": (
        "rollscope.session_id",
        "xtuner.rollout_id",
        "rollout_id",
        "traj_id",
        "session_id",
        "sample_id",
        "uid",
    ),
    "conversation": ("gen_ai.conversation.id", "session.id"),
    "sample": ("rollscope.sample", "rollout_n", "sample_index"),
    "step": (
        "rollscope.step",
        "global_step",
        "global_steps",
        "step",
        "train_step",
        "xtuner.producer_future_step",
        "run.work.step",
    ),
    "kind": ("rollscope.kind",),
    "phase": ("rollscope.phase", "xtuner.stage", "stage", "stage.name"),
    "lane": ("rollscope.lane", "state_lane_id"),
    "outcome": ("rollscope.outcome", "xtuner.status"),
    "reason": ("rollscope.reason",),
    "version_start": ("rollscope.version_start", "run.work.policy.start", "min_global_steps"),
    "version_end": ("rollscope.version_end", "run.work.policy.end", "max_global_steps"),
    "consumed_step": ("rollscope.consumed_step", "consumed_step", "trained_at_step"),
    "span_type": ("rollscope.span_type", "logfire.span_type"),
    "pending_parent": ("logfire.pending_parent_id",),
    "operation": ("gen_ai.operation.name",),
    "span_kind": ("openinference.span.kind",),
}
"""What tells where a span belongs, and what it is; not kept as attributes, but for the session."""

DETAILS: Final[dict[str, tuple[str, ...]]] = {
    "family": (
        "rollscope.family",
        "xtuner.task_name",
        "task_name",
        "env.name",
        "env.id",
        "data_source",
    ),
    "attempt": ("rollscope.attempt", "attempt", "attempt_number"),
    "branch": ("rollscope.branch", "traj", "chain_id", "branch"),
    "version": ("model_step", "model_version", "weight_version", "version"),
    "tokens_in": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "prompt.tokens",
        "prompt_tokens",
        "input_tokens",
    ),
    "tokens_out": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "completion.tokens",
        "completion_tokens",
        "output_tokens",
        "response_length",
    ),
    "tokens_cached": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
        "cached_tokens",
        "cached_input_tokens",
    ),
    "tokens_reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "llm.token_count.completion_details.reasoning",
        "reasoning_tokens",
    ),
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model"),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider"),
    "request_id": (
        "gen_ai.response.id",
        "gen_ai.request.id",
        "rid",
        "sglang_request_id",
        "request_id",
    ),
    "finish": (
        "gen_ai.response.finish_reasons",
        "llm.finish_reason",
        "finish_reason",
        "stop_reason",
        "stop_condition",
    ),
    "queue_s": ("gen_ai.latency.time_in_queue", "queue_time"),
    "ttft_s": ("gen_ai.latency.time_to_first_token", "gen_ai.response.time_to_first_chunk"),
    "e2e_s": ("gen_ai.latency.e2e", "e2e_latency"),
    "prefill_s": ("gen_ai.latency.time_in_model_prefill", "pd_prefill_forward_duration"),
    "decode_s": ("gen_ai.latency.time_in_model_decode", "pd_decode_forward_duration"),
    "inference_s": (
        "gen_ai.latency.time_in_model_inference",
        "gen_ai.latency.time_in_model_forward",
        "gen_ai.latency.time_in_model_execute",
    ),
    "tool": ("gen_ai.tool.name", "tool.name", "tool"),
    "reward": (
        "rollscope.reward",
        "gen_ai.evaluation.score.value",
        "reward.score",
        "reward",
        "reward_score",
    ),
    "role": ("rollscope.role", "role"),
    "rank": ("rollscope.rank", "rank", "worker_rank", "dp_rank"),
    "replica": ("rollscope.replica", "replica", "replica_rank"),
    "engine.session_id": ("xtuner.session_id",),
    "queue_wait_s": ("rollscope.queue_wait_s",),
}
"""What is kept as an attribute, under the name that the rest of Rollscope asks for."""

CONTENT_PREFIXES: Final = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.prompt",
    "gen_ai.completion",
    "llm.input_messages",
    "llm.output_messages",
    "llm.prompts",
    "input.value",
    "output.value",
    "all_messages_events",
    "pydantic_ai.all_messages",
    "request_data",
    "response_data",
)
"""Attributes that begin so hold what was said, which is kept as payload or not at all."""

_NUMBERS: Final = frozenset(
    {"attempt", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "version"}
)
_SECONDS: Final = frozenset(name for name in DETAILS if name.endswith("_s")) | {"reward"}


class _Alias(NamedTuple):
    name: str
    rank: int
    is_place: bool


_ALIASES: Final = {
    alias: _Alias(name, rank, table is PLACES)
    for table in (PLACES, DETAILS)
    for name, aliases in table.items()
    for rank, alias in enumerate(aliases)
}


class Meaning(NamedTuple):
    """What the attributes of a span say."""

    place: Attrs
    """By the names of `PLACES`."""
    details: Attrs
    """All that is kept as attributes."""
    content: Attrs
    """What was said to and by a model."""
    session_alias: str
    """The name under which the session was given; empty if it was not."""


def read_aliases(attrs: Attrs) -> Meaning:
    """Read what attributes mean."""
    place: Attrs = {}
    details: Attrs = {}
    content: Attrs = {}
    ranks: dict[str, int] = {}
    for key, value in attrs.items():
        alias = _ALIASES.get(key)
        if alias is None:
            if key.startswith(CONTENT_PREFIXES):
                content[key] = value
            else:
                details[key] = value
            continue
        name, rank, is_place = alias
        if ranks.get(name, rank) < rank:
            continue
        ranks[name] = rank
        if is_place:
            place[name] = value
        else:
            details[name] = _fit(name, value)
    if "experiment_name" in attrs or "session" in attrs or "rollout_n" in attrs:
        _read_pairs(attrs, place)
    session_alias = PLACES["session"][ranks["session"]] if "session" in ranks else ""
    return Meaning(place, details, content, session_alias)


def _read_pairs(attrs: Attrs, place: Attrs) -> None:
    """Read names that mean something only beside another one."""
    if "experiment_name" in attrs and "run" not in place:
        project = attrs.get("project")
        name = attrs["experiment_name"]
        place["run"] = f"{project}-{name}" if project else name
    if "sample" in attrs and "session" in attrs:
        place.setdefault("task_key", attrs["sample"])
        place.setdefault("session", f"{attrs['sample']}/{attrs['session']}")
        place.setdefault("sample", attrs["session"])
    if "sample_index" in attrs and "rollout_n" in attrs:
        place.setdefault("task_key", attrs["sample_index"])
        place.setdefault("session", f"{attrs['sample_index']}/{attrs['rollout_n']}")


def _fit(name: str, value: Any) -> Any:  # noqa: ANN401
    if name == "finish":
        if isinstance(value, list):
            value = value[0] if value else None
        return value.get("type") if isinstance(value, dict) else value
    number: int | float | None = None
    if name in _NUMBERS:
        number = whole_number(value)
    elif name in _SECONDS:
        number = first_number(value)
    return value if number is None else number


def whole_number(value: object) -> int | None:
    """Read a whole number of 64 bits in any spelling; None if it is none."""
    if value is None:
        return None
    number = value if type(value) is int else first_number(value)
    if number is None or number != number // 1:
        return None
    return int(number) if -(2**63) <= number < 2**63 else None


def first_number(value: object) -> int | float | None:
    """Read a number in any spelling; None if it is none, or has no size."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = (
                int(value) if value.lstrip("-").isdecimal() and len(value) < 24 else float(value)
            )
        except ValueError:
            return None
    if isinstance(value, int):
        return value
    is_finite = isinstance(value, float) and abs(value) < float("inf")
    return value if isinstance(value, float) and is_finite else None
