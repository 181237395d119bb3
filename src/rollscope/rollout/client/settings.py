"""What a caller may say about sampling, in OpenAI's words, as an engine's configuration."""

from collections.abc import Mapping
from typing import Any, Final

from rollscope.instrument.guard import tell
from rollscope.rollout.client.limits import DEFAULT_TOKENS, TokenLimit, given
from rollscope.rollout.engine import GenerationConfig

__all__ = ["Advice", "sampling_changes", "take_template_settings"]

_TEMPLATE: Final = "chat_template_kwargs"

_SAME: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_HARMLESS: Final = frozenset(
    {
        "model",
        "user",
        "store",
        "metadata",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "timeout",
        "extra_headers",
        "extra_query",
        "logprobs",
        "n",
    }
)
"""What does not change what an engine samples, or is looked at elsewhere."""


class Advice:
    """What a client has to tell its user; each thing once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def about_limit(self, limit: TokenLimit, name: str) -> None:
        """Tell that nobody limited the length of answers."""
        if limit.is_default and self._is_new("limit"):
            tell(
                "no limit was set on the length of answers, so they end after %d tokens; set %s",
                DEFAULT_TOKENS,
                name,
            )

    def about_setting(self, name: str) -> None:
        """Tell that a setting has no effect."""
        if self._is_new(f"setting {name}"):
            tell("the engine client does not know the setting %r and goes on without it", name)

    def _is_new(self, what: str) -> bool:
        is_new = what not in self._told
        self._told.add(what)
        return is_new


def take_template_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Take out of a call's `extra_body` what is for the chat template, where servers look for it.

    Args:
        settings: Keyword arguments of the call; changed, what they hold is not.
    """
    body = given(settings.get("extra_body"))
    if not isinstance(body, Mapping) or _TEMPLATE not in body:
        return {}
    settings["extra_body"] = {name: body[name] for name in body if name != _TEMPLATE}
    return dict(body[_TEMPLATE] or {})


def sampling_changes(
    base: GenerationConfig, settings: Mapping[str, Any], advice: Advice
) -> dict[str, Any]:
    """Give what a call's settings change in a configuration.

    Args:
        base: The configuration, whose `extra` is added to.
        settings: Keyword arguments of the call.
        advice: Is told of settings that have no effect.
    """
    changes: dict[str, Any] = {}
    for name, value in settings.items():
        value = given(value)
        if value is None or name in _HARMLESS:
            continue
        if name in _SAME:
            changes[name] = float(value)
        elif name == "stop":
            changes[name] = (value,) if isinstance(value, str) else tuple(value)
        elif name == "extra_body":
            changes["extra"] = {**base.extra, **value}
        else:
            advice.about_setting(name)
    return changes
