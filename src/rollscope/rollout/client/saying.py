"""What was said in a call, for those who keep payloads: what was asked, and what was answered."""

from collections.abc import Mapping
from typing import Any

from rollscope.rollout.client.messages import answer_message, read_input, response_messages
from rollscope.rollout.client.shapes import ChatCompletion, Completion, Response, Shape

__all__ = ["said_answer", "said_question"]


def said_question(body: Mapping[str, Any]) -> Any:  # noqa: ANN401  (messages, text or tokens)
    """Give what a request asks: the conversation so far, or the text to continue."""
    if "input" in body:
        return read_input(body["input"], body.get("instructions"))
    return body.get("messages", body.get("prompt"))


def said_answer(answer: Shape) -> Any:  # noqa: ANN401  (a message, several, or text)
    """Give what a server answered, calls of tools included."""
    if isinstance(answer, ChatCompletion):
        return [answer_message(choice.message) for choice in answer.choices]
    if isinstance(answer, Response):
        return response_messages(answer)
    if isinstance(answer, Completion):
        return "".join(choice.text for choice in answer.choices)
    return answer.model_dump(exclude_none=True)
