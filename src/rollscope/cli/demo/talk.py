"""What the demo's rollouts say, so that there is something to read on the page of a session."""

from typing import Any, Final

__all__ = ["Conversation"]

_ASKED: Final = {
    "python": ("Let me compute that.", "print(6 * 7)", "42"),
    "search": ("I will look it up.", "rollout scheduling", "3 results, the first from 2024"),
    "browser": ("The page should say so.", "open the first result", "200 OK"),
}


class Conversation:
    """The messages of one session, as chat models take them."""

    def __init__(self, task: str) -> None:
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Solve the task. Use tools where they help."},
            {"role": "user", "content": f"Task {task}: how much is six times seven?"},
        ]

    def so_far(self) -> list[dict[str, Any]]:
        """Give what a model would be asked to continue."""
        return list(self._messages)

    def call(self, tool: str) -> dict[str, Any]:
        """Add the model's turn, which calls a tool, and give it."""
        thought, argument, _ = _ASKED[tool]
        call = {"type": "function", "function": {"name": tool, "arguments": argument}}
        self._messages.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        return self._messages[-1]

    def answer(self, tool: str) -> None:
        """Add what the tool gave."""
        self._messages.append({"role": "tool", "name": tool, "content": _ASKED[tool][2]})
