"""Clients and answers that are not as the package makes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations.openai import instrument, uninstrument
from rollscope.integrations.openai.answers import facts_of_answer, facts_of_piece, is_first_token
from rollscope.integrations.openai.calls import may_be_told
from rollscope.testing.capture import capture


class Completions:
    """A resource of a client of somebody else's."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def create(self, **settings: Any) -> Any:
        """Give the answer."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def client_with(answer: Any) -> Any:
    return SimpleNamespace(chat=SimpleNamespace(completions=Completions(answer)))


class Hostile:
    """An answer each of whose fields is something else than it should be."""

    model = 7
    id = b"bytes"
    choices = "none"
    usage = SimpleNamespace(
        prompt_tokens=True, completion_tokens=float("nan"), prompt_tokens_details=[1]
    )

    @property
    def status(self) -> str:
        return "<script>alert(1)</script>" * 10_000


def test_odd_answers_are_passed_on_and_tell_what_they_can() -> None:
    with capture() as captured:
        for answer in (None, 3, "text", {"usage": 1}, Hostile()):
            assert instrument(client_with(answer)).chat.completions.create(model=[1]) is answer
        spans = captured.spans()

    assert [span.name for span in spans] == ["generate"] * 5
    assert [span.status for span in spans] == ["ok"] * 5
    assert set(spans[-1].attrs) == {"finish"}
    assert len(spans[-1].attrs["finish"]) < 5_000


def test_an_answer_whose_fields_raise_does_not_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raising:
        @property
        def usage(self) -> int:
            raise RuntimeError("not now")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    answer = Raising()
    with capture() as captured:
        assert instrument(client_with(answer)).chat.completions.create() is answer
        assert captured.named("generate").status == "ok"


def test_an_error_passes_and_is_recorded() -> None:
    error = TimeoutError("too slow")
    with capture() as captured:
        with pytest.raises(TimeoutError) as caught:
            instrument(client_with(error)).chat.completions.create()
        span = captured.named("generate")
    assert caught.value is error
    assert (span.status, span.attrs) == ("error", {"error_type": "TimeoutError"})


def test_a_stream_of_plain_iterators_is_timed_to_its_end() -> None:
    pieces = [SimpleNamespace(model="m"), SimpleNamespace(usage=SimpleNamespace(input_tokens=3))]
    with capture() as captured:
        answer = instrument(client_with(iter(pieces))).chat.completions.create(stream=True)
        assert captured.named("generate").status == "open"
        assert list(answer) == pieces
        with pytest.raises(StopIteration):
            next(answer)
        span = captured.named("generate")
        assert not rs.current()
    assert span.status == "ok"
    assert {**span.attrs, "ttft_s": 0} == {"ttft_s": 0, "model": "m", "tokens_in": 3}


def test_taking_it_off_leaves_the_client_as_it_was() -> None:
    client = client_with("x")
    before = dict(vars(client.chat.completions))
    instrument(client)
    uninstrument(client)
    uninstrument(client)

    assert vars(client.chat.completions) == before


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(TypeError, match=r"SimpleNamespace has no chat\.completions"):
        instrument(SimpleNamespace())


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("api.openai.com", False),
        ("OpenAI.com", False),
        ("us.openai.azure.com", False),
        ("notopenai.com", True),
        ("10.0.0.7", True),
        ("engine", True),
        (None, True),
    ],
)
def test_public_services_are_not_told_of_the_run(host: str | None, told: bool) -> None:
    url = SimpleNamespace(host=host)
    resource = SimpleNamespace(_client=SimpleNamespace(base_url=url))

    assert may_be_told(resource) is told


def test_pieces_of_responses_tell_by_the_answer_they_carry() -> None:
    whole = SimpleNamespace(id="r", status="completed", incomplete_details=None)

    assert facts_of_piece(SimpleNamespace(response=whole)) == {
        "request_id": "r",
        "finish": "completed",
    }
    assert facts_of_answer(SimpleNamespace(choices=[])) == {}
    assert not is_first_token(SimpleNamespace(type="response.created"))
    assert is_first_token(SimpleNamespace(type="response.output_text.delta"))
    assert is_first_token(SimpleNamespace(choices=[]))
