from __future__ import annotations

import asyncio

import pytest

import rollscope.rollout.engine as engine_module
from rollscope.rollout.engine import GenerationConfig, ModelRequest, ModelResponse, generate
from tests.unit.rollout.fakes import FakeEngine


def aborted(tokens: list[int], version: int) -> ModelResponse:
    return part(tokens, version, "abort")


def part(tokens: list[int], version: int, stop_reason: engine_module.StopReason) -> ModelResponse:
    return ModelResponse([], tokens, [-0.1] * len(tokens), [version] * len(tokens), stop_reason)


def test_a_config_is_copied_with_changes_and_refuses_unknown_settings() -> None:
    config = GenerationConfig(max_new_tokens=9)
    changed = config.new(temperature=0.0)
    assert (changed.max_new_tokens, changed.temperature) == (9, 0.0)
    assert config.temperature == 1.0
    with pytest.raises(TypeError, match="warmth"):
        config.new(warmth=1)


def test_requests_have_names_of_their_own() -> None:
    assert ModelRequest([1]).rid != ModelRequest([1]).rid


def test_a_whole_answer_passes_through() -> None:
    engine = FakeEngine(part([5, 6], 3, "stop"))
    response = asyncio.run(generate(engine, ModelRequest([1, 2, 3])))
    assert response == ModelResponse([1, 2, 3], [5, 6], [-0.1, -0.1], [3, 3], "stop")
    assert (response.input_len, response.output_len) == (3, 2)


def test_an_aborted_answer_is_continued_from_its_tokens_and_keeps_each_version() -> None:
    engine = FakeEngine(aborted([5, 6], 3), aborted([], 4), part([7], 5, "stop"))
    config = GenerationConfig(max_new_tokens=10, min_new_tokens=3, max_tokens=9)
    response = asyncio.run(generate(engine, ModelRequest([1, 2], config, rid="one")))
    assert response.output_tokens == [5, 6, 7]
    assert response.output_versions == [3, 3, 5]
    assert response.input_tokens == [1, 2]
    assert response.stop_reason == "stop"
    asked = [
        (r.rid, r.input_ids, r.gconfig.max_new_tokens, r.gconfig.min_new_tokens)
        for r in engine.requests
    ]
    assert asked == [
        ("one", [1, 2], 7, 3),
        ("one", [1, 2, 5, 6], 5, 1),
        ("one", [1, 2, 5, 6], 5, 1),
    ]


def test_an_abort_that_used_up_the_room_ends_by_length() -> None:
    engine = FakeEngine(aborted([5, 6], 3))
    response = asyncio.run(generate(engine, ModelRequest([1], GenerationConfig(max_new_tokens=2))))
    assert (response.output_tokens, response.stop_reason) == ([5, 6], "length")
    assert len(engine.requests) == 1


def test_tokens_without_versions_get_the_version_at_the_request() -> None:
    engine = FakeEngine(ModelResponse([], [5, 6], [-0.1, -0.2]))
    engine.version = 12
    response = asyncio.run(generate(engine, ModelRequest([1])))
    assert response.output_versions == [12, 12]


@pytest.mark.parametrize(("logprobs", "versions"), [([-0.1], [1, 1]), ([-0.1, -0.1], [1])])
def test_an_answer_with_holes_is_refused(logprobs: list[float], versions: list[int]) -> None:
    engine = FakeEngine(ModelResponse([], [5, 6], logprobs, versions))
    with pytest.raises(ValueError, match=r"with 2 tokens, \d logprobs and \d versions"):
        asyncio.run(generate(engine, ModelRequest([1])))


def test_more_than_one_sample_is_refused_before_the_engine_is_asked() -> None:
    engine = FakeEngine()
    with pytest.raises(ValueError, match="one sample, not 2"):
        asyncio.run(generate(engine, ModelRequest([1], GenerationConfig(n_samples=2))))
    assert engine.requests == []


@pytest.mark.parametrize(
    "config", [GenerationConfig(max_tokens=3), GenerationConfig(max_new_tokens=0)]
)
def test_a_prompt_that_leaves_no_room_is_refused(config: GenerationConfig) -> None:
    with pytest.raises(ValueError, match="3 tokens leaves no room"):
        asyncio.run(generate(FakeEngine(), ModelRequest([1, 2, 3], config)))


def test_no_request_is_sent_while_the_runner_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(aborted([5], 3), part([6], 4, "stop"))
    seen_at_pause: list[int] = []

    class Paused:
        async def pause_point(self) -> None:
            seen_at_pause.append(len(engine.requests))

        def progress(self) -> None:
            seen_at_pause.append(-1)

    monkeypatch.setattr(engine_module, "ctx", Paused())
    asyncio.run(generate(engine, ModelRequest([1])))
    assert seen_at_pause == [0, -1, 1]


def test_an_engine_that_aborts_at_once_leaves_the_loop_to_others() -> None:
    async def main() -> int:
        engine = FakeEngine(*[aborted([], 1)] * 3, part([5], 1, "stop"))
        turns = 0

        async def neighbour() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(neighbour())
        await generate(engine, ModelRequest([1]))
        other.cancel()
        return turns

    assert asyncio.run(main()) > 3
