"""Payloads as messages: conversations are taken apart, everything else is one piece of text.

A conversation is a list of maps with a `role`, one such map, or what a chat server answered
(`choices`). Text that was cut in the middle is read as far as it goes.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

__all__ = ["Message", "split_payload"]

_ROLE: Final = "role"
_MOST_MESSAGES: Final = 5_000
_SPACE: Final = " \t\r\n"
_decode_item = json.JSONDecoder().raw_decode


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or a piece of text that is none."""

    role: str | None = None
    """Who said it; `tool_call` for a call that the assistant wants; None for other text."""
    text: str
    is_json: bool = False
    """Whether the text is JSON, indented."""
    is_cut: bool = False
    """Whether its end was not kept."""


def split_payload(text: str, *, is_cut: bool = False) -> list[Message]:
    """Take a payload apart.

    Args:
        text: JSON, as it was kept.
        is_cut: Its end was not kept.
    """
    return [_sound(message) for message in _split(text, is_cut=is_cut)]


def _sound(message: Message) -> Message:
    """Replace halves of characters, which JSON can hold and UTF-8 cannot."""
    role, text = message.role, message.text
    try:
        text.encode()
        (role or "").encode()
    except UnicodeEncodeError:
        return msgspec.structs.replace(
            message, text=_whole(text), role=None if role is None else _whole(role)
        )
    return message


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _split(text: str, *, is_cut: bool) -> list[Message]:
    try:
        value = json.loads(text)  # also takes halves of characters
    except (ValueError, RecursionError):
        return _split_cut(text)
    if isinstance(value, str):
        return [Message(text=value, is_cut=is_cut)]
    messages = list(_messages(value))
    if messages:
        return messages
    return [Message(text=_indented(value), is_json=True, is_cut=is_cut)]


def _split_cut(text: str) -> list[Message]:
    """Read a list, or a text, whose end is missing."""
    if text.startswith('"'):
        return [Message(text=_unquoted(text), is_cut=True)]
    if not text.startswith("["):
        return [Message(text=text, is_cut=True)]
    found: list[Message] = []
    at = 1
    while at < len(text) and len(found) < _MOST_MESSAGES:
        while at < len(text) and text[at] in _SPACE + ",":
            at += 1
        try:
            item, end = _decode_item(text, at)
        except (ValueError, RecursionError):
            break
        messages = list(_messages(item))
        if not messages:  # a list of something else
            return [Message(text=text, is_cut=True)]
        found += messages
        at = end
    return [*found, Message(text=text[at:], is_cut=True)]


def _unquoted(text: str) -> str:
    """Read a JSON text whose closing quote is missing, and perhaps half of an escape."""
    for dropped in range(7):
        try:
            return str(json.loads(text[: len(text) - dropped] + '"', strict=False))
        except ValueError:
            continue
    return text[1:]


def _messages(value: Any) -> Iterator[Message]:  # noqa: ANN401  (any JSON)
    if isinstance(value, list):
        if value and all(_is_message(item) for item in value):
            for item in value[:_MOST_MESSAGES]:
                yield from _one(item)
    elif _is_message(value):
        yield from _one(value)
    elif isinstance(value, dict) and isinstance(value.get("choices"), list):
        for choice in value["choices"]:
            said = choice.get("message") if isinstance(choice, dict) else None
            if said is not None and _is_message(said):
                yield from _one(said)


def _is_message(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, dict) and isinstance(value.get(_ROLE), str)


def _one(message: dict[str, Any]) -> Iterator[Message]:
    """Give what was said, what was thought before it, and the calls that came with it."""
    role = message[_ROLE]
    thought = message.get("reasoning_content")
    if isinstance(thought, str) and thought:
        yield Message(role=f"{role} reasoning", text=thought)
    content = message.get("content")
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    if content not in (None, "", []) or not calls:
        yield _content(role, "" if content is None else content)
    for call in calls:
        yield Message(role="tool_call", text=_call(call), is_json=True)


def _content(role: str, content: Any) -> Message:  # noqa: ANN401
    if isinstance(content, str):
        return Message(role=role, text=content)
    if isinstance(content, list) and content and all(_is_text_part(part) for part in content):
        return Message(role=role, text="\n".join(part["text"] for part in content))
    return Message(role=role, text=_indented(content), is_json=True)


def _is_text_part(part: Any) -> bool:  # noqa: ANN401
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _call(call: Any) -> str:  # noqa: ANN401
    """Write a call with its arguments as values, where the model wrote them as JSON."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return _indented(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(msgspec.DecodeError, RecursionError):
            arguments = msgspec.json.decode(arguments)
    return _indented({"id": call.get("id"), "name": function.get("name"), "arguments": arguments})


def _indented(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, indent=2, ensure_ascii=False)
