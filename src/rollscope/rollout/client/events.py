"""Server-sent events, read from chunks that may be cut anywhere, and pieces of answers joined."""

from typing import Final

from rollscope.rollout.client.shapes import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatMessage,
    Choice,
    Completion,
    CompletionChoice,
    CompletionUsage,
    ToolCall,
    ToolCallDelta,
)

__all__ = ["DONE", "ChatJoiner", "EventReader", "TextJoiner"]

DONE: Final = b"[DONE]"
"""What OpenAI sends as the last event."""


class EventReader:
    """Gives the data of events. Works on bytes, so that a cut character does no harm."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []

    @property
    def held_bytes(self) -> int:
        """How much of an unfinished event is held."""
        return len(self._line) + sum(map(len, self._data))

    def feed(self, chunk: bytes) -> list[bytes]:
        """Give the data of the events that a chunk completes."""
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            self._line += tail
            return []
        whole = bytes(self._line) + head
        self._line = bytearray(tail)
        return [event for line in whole.split(b"\n") if (event := self._take(line)) is not None]

    def finish(self) -> list[bytes]:
        """Give the data of a last event that no empty line follows."""
        events = [self._take(bytes(self._line)), self._take(b"")]
        self._line.clear()
        return [event for event in events if event is not None]

    def _take(self, line: bytes) -> bytes | None:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            event = b"\n".join(self._data)
            self._data = []
            return event
        return None


class ChatJoiner:
    """Makes one answer of its pieces."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._usage: CompletionUsage | None = None
        self._first: ChatCompletionChunk | None = None
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, ToolCall] = {}

    @property
    def has_begun(self) -> bool:
        """Whether anything was said yet; the role alone is nothing."""
        return bool(self._content or self._reasoning or self._calls)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Add the next piece."""
        self._first = self._first or chunk
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices:
            if choice.index:  # one answer is asked for
                continue
            self.finish_reason = choice.finish_reason or self.finish_reason
            if choice.delta.content:
                self._content.append(choice.delta.content)
            if choice.delta.reasoning_content:
                self._reasoning.append(choice.delta.reasoning_content)
            for delta in choice.delta.tool_calls or ():
                self._add_call(delta)

    def _add_call(self, delta: ToolCallDelta) -> None:
        index = delta.index
        known = self._calls.get(index)
        if known is not None and delta.id and known.id and delta.id != known.id:
            index = max(self._calls) + 1  # a server that does not number its calls
        call = self._calls.setdefault(index, ToolCall())
        call.id = call.id or delta.id
        call.type = delta.type or call.type
        call.function.name = (call.function.name or "") + (delta.function.name or "")
        call.function.arguments = (call.function.arguments or "") + (delta.function.arguments or "")

    def joined(self) -> ChatCompletion:
        """Give the answer so far."""
        message = ChatMessage(
            content="".join(self._content) or (None if self._calls else ""),
            tool_calls=[self._calls[index] for index in sorted(self._calls)] or None,
            reasoning_content="".join(self._reasoning) or None,
        )
        first = self._first or ChatCompletionChunk()
        return ChatCompletion(
            id=first.id,
            created=first.created,
            model=first.model,
            choices=[Choice(message=message, finish_reason=self.finish_reason)],
            usage=self._usage,
        )


class TextJoiner:
    """Makes one continuation of a text of its pieces."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._first: Completion | None = None
        self._usage: CompletionUsage | None = None
        self._text: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether there is any text yet."""
        return bool(self._text)

    def add(self, chunk: Completion) -> None:
        """Add the next piece."""
        self._first = self._first or chunk
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices:
            if not choice.index:
                self.finish_reason = choice.finish_reason or self.finish_reason
                self._text += [choice.text] if choice.text else []

    def joined(self) -> Completion:
        """Give the text so far."""
        first = self._first or Completion(choices=[])
        choice = CompletionChoice(text="".join(self._text), finish_reason=self.finish_reason)
        return Completion(
            id=first.id,
            created=first.created,
            model=first.model,
            choices=[choice],
            usage=self._usage,
        )
