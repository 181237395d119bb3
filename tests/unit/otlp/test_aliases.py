from __future__ import annotations

from typing import Any

import pytest

from rollscope.otlp.aliases import read_aliases, read_places
from rollscope.otlp.othernames import DETAILS, PLACES

# By the name of ours: what others call it, the first of them first.
NAMES: dict[str, str] = {
    "run": "rollscope.run run.id run_id wandb.run_id",
    "task_key": "rollscope.task_key task.key task_id sample_index",
    "group": "rollscope.group xtuner.group_id traj_group_id group.id group_id group_index",
    "session": "rollscope.session_id session_id xtuner.rollout_id rollout_id traj_id sample_id uid",
    "conversation": "gen_ai.conversation.id session.id",
    "sample": "rollscope.sample rollout_n",
    "step": "rollscope.step global_step global_steps step train_step xtuner.producer_future_step "
    "run.work.step",
    "consumed_step": "rollscope.consumed_step consumed_step trained_at_step",
    "version_start": "rollscope.version_start run.work.policy.start min_global_steps",
    "version_end": "rollscope.version_end run.work.policy.end max_global_steps",
    "family": "rollscope.family xtuner.task_name task_name env.name env.id source data_source tag",
    "attempt": "rollscope.attempt attempt attempt_number retry",
    "branch": "rollscope.branch traj chain_id branch",
    "version": "model_step model_version weight_version version",
    "tokens_in": "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt "
    "prompt.tokens prompt_tokens input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens "
    "llm.token_count.completion completion.tokens completion_tokens output_tokens response_length",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cached_tokens "
    "llm.token_count.prompt_details.cache_read cached_tokens cached_input_tokens",
    "tokens_reasoning": "gen_ai.usage.reasoning.output_tokens "
    "llm.token_count.completion_details.reasoning reasoning_tokens",
    "model": "gen_ai.response.model gen_ai.request.model llm.model_name model",
    "provider": "gen_ai.provider.name gen_ai.system llm.provider",
    "request_id": "gen_ai.response.id gen_ai.request.id rid sglang_request_id request_id",
    "finish": "gen_ai.response.finish_reasons llm.finish_reason finish_reason stop_reason "
    "stop_condition",
    "queue_s": "gen_ai.latency.time_in_queue queue_time",
    "ttft_s": "gen_ai.latency.time_to_first_token gen_ai.response.time_to_first_chunk",
    "e2e_s": "gen_ai.latency.e2e e2e_latency",
    "prefill_s": "gen_ai.latency.time_in_model_prefill pd_prefill_forward_duration",
    "decode_s": "gen_ai.latency.time_in_model_decode pd_decode_forward_duration",
    "inference_s": "gen_ai.latency.time_in_model_inference gen_ai.latency.time_in_model_forward "
    "gen_ai.latency.time_in_model_execute",
    "tool": "gen_ai.tool.name tool.name tool",
    "reward": "rollscope.reward gen_ai.evaluation.score.value reward.score reward reward_score",
    "role": "rollscope.role role",
    "rank": "rollscope.rank rank worker_rank dp_rank RANK",
    "replica": "rollscope.replica replica replica_rank",
    "engine.session_id": "xtuner.session_id",
}


def said(attrs: dict[str, Any], name: str) -> Any:
    meaning = read_aliases(attrs)
    assert read_places(attrs).place == meaning.place
    return meaning.place.get(name) if name in PLACES else meaning.details.get(name)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_read_and_the_first_of_two_counts(name: str) -> None:
    names = NAMES[name].split()
    assert {**PLACES, **DETAILS}[name] == tuple(names)
    for place, first in enumerate(names):
        assert said({first: 7}, name) == 7
        for second in names[place + 1 :]:
            assert said({first: 1, second: 2}, name) == said({second: 2, first: 1}, name) == 1


@pytest.mark.parametrize(
    ("attrs", "place"),
    [
        (
            {"sample_index": 4, "rollout_n": 1, "uid": "u"},
            {"task_key": 4, "sample": 1, "session": "4/1", "group": "u"},
        ),
        ({"sample": "a", "session": 2}, {"task_key": "a", "sample": 2, "session": "a/2"}),
        ({"uid": "u", "traj_id": "t"}, {"session": "t", "group": "u"}),
        ({"uid": "u"}, {"session": "u"}),
        ({"project": "verl", "experiment_name": "ppo"}, {"run": "verl-ppo"}),
        ({"experiment_name": "ppo"}, {"run": "ppo"}),
        (
            {"state_lane_id": "experiment=e/f/sample=1/session=0/traj=2", "session_id": "s"},
            {"task_key": "1", "sample": "0", "session": "1/0", "loop": "turn"},
        ),
        (
            {"monitor.trace_source": "task", "sample": 3, "session": 1},
            {"task_key": 3, "sample": 1, "session": "3/1", "loop": "task"},
        ),
        ({"state_lane_id": "replica_3"}, {"lane": "replica_3"}),
        ({"session": "alone"}, {}),
    ],
)
def test_names_that_mean_something_only_together(
    attrs: dict[str, Any], place: dict[str, Any]
) -> None:
    assert read_aliases(attrs).place == read_places(attrs).place == place


def test_other_forms_of_values_are_read() -> None:
    details = read_aliases(
        {
            "finish_reason": {"type": "length"},
            "state_lane_id": "replica_3",
            "evaluations.0.evaluation.score": "0.5",
            "prompt_tokens": "12",
        }
    ).details
    assert (details["finish"], details["replica"]) == ("length", "replica_3")
    assert (details["reward"], details["tokens_in"]) == (0.5, 12)
    lists = read_aliases({"gen_ai.response.finish_reasons": ["stop", "x"], "traj": 1}).details
    assert lists == {"finish": "stop", "branch": 1}
