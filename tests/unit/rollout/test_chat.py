from __future__ import annotations

import pytest

from rollscope.rollout.chat import follow_up_ids, one_sample, prompt_ids, prompt_text
from rollscope.rollout.engine import GenerationConfig
from tests.unit.rollout.fakes import EOS, FakeTokenizer

QUESTION = [{"role": "user", "content": "hi"}]


def test_a_prompt_ends_where_the_model_is_to_speak() -> None:
    tokenizer = FakeTokenizer()
    assert prompt_text(tokenizer, QUESTION) == "<|user|>hi<|end|>\n<|assistant|>"
    tokens = prompt_ids(tokenizer, QUESTION, enable_thinking=True)
    assert tokenizer.decode(tokens) == "<|user|>hi<|end|>\n<|assistant|>"
    assert tokenizer.settings == [{}, {"enable_thinking": True}]


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "last answer written otherwise"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_what_follows_an_answer_continues_the_very_tokens(*, thinks: bool, is_ended: bool) -> None:
    tokenizer = FakeTokenizer(thinks=thinks)
    answer = [*tokenizer.encode("yes"), *([EOS] if is_ended else [])]
    more = follow_up_ids(tokenizer, answer, [{"role": "tool", "content": "42"}])
    thought = "(thought)" if thinks else ""
    expected = f"yes<|end|>\n<|tool|>{thought}42<|end|>\n<|assistant|>"
    assert tokenizer.decode([*answer, *more]) == expected


def test_a_template_without_answers_is_refused() -> None:
    class Forgetful(FakeTokenizer):
        def _written(self, message: dict[str, str], *, is_last: bool) -> str:
            return (
                "" if message["role"] == "assistant" else super()._written(message, is_last=is_last)
            )

    with pytest.raises(ValueError, match="does not write out"):
        follow_up_ids(Forgetful(), [], QUESTION)


def test_one_sample_stops_at_the_end_of_an_answer_once() -> None:
    config = GenerationConfig(n_samples=4, stop_token_ids=[9, EOS])
    assert one_sample(config, FakeTokenizer()).n_samples == 1
    assert one_sample(config, FakeTokenizer()).stop_token_ids == (9, EOS)
    assert one_sample(GenerationConfig(), FakeTokenizer()).stop_token_ids == (EOS,)
