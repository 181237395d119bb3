"""Where settings come from: keyword arguments and `ROLLSCOPE_*` variables."""

import re
from collections.abc import Mapping
from typing import Any

from rollscope.config.settings import Settings, all_settings
from rollscope.config.values import Rejected, is_off
from rollscope.errors import SettingError

__all__ = ["COMMAND_VARIABLES", "RAISE_VARIABLE", "resolve", "unknown_variables"]

COMMAND_VARIABLES = (
    "ROLLSCOPE_STATE_DIR",
    "ROLLSCOPE_PROMETHEUS",
    "ROLLSCOPE_ALERTMANAGER",
    "ROLLSCOPE_TEMPO",
    "ROLLSCOPE_GRAFANA",
)
"""What only commands heed: where they keep their state, and where programs of others are."""
RAISE_VARIABLE = "ROLLSCOPE_RAISE"
"""Set to 1, it lets internal faults raise; no setting, since it is for our own tests."""


def resolve(given: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """Validate keyword arguments and `ROLLSCOPE_*` variables; an argument wins over a variable.

    `None` as an argument means "not given". `ROLLSCOPE=off` wins over `enabled=True`, so that an
    operator can silence a program without touching it.

    Raises:
        SettingError: A name is unknown or a value is not allowed.
    """
    known = all_settings()
    for name in given:
        if name not in known:
            raise SettingError(f"unknown setting {name!r}; {_hint(name, known)}")
    values: dict[str, Any] = {}
    for name, setting in known.items():
        sources = (
            (f"setting {name!r}", given.get(name)),
            (setting.variable, environ.get(setting.variable)),
        )
        for source, value in sources:
            if value is None or value == "":
                continue
            try:
                values[name] = setting.parse(value)
            except Rejected:
                shown = _without_secret(name, value)
                raise SettingError(f"{source} is {shown!r}; allowed: {setting.allowed}") from None
            break
    if is_off(environ.get("ROLLSCOPE", "")):
        values["enabled"] = False
    return Settings(**values)


def _without_secret(name: str, value: object) -> object:
    """Give what may be shown of a value: messages end up in logs, and logs in many hands."""
    if name == "token":
        return "…"
    return re.sub(r"token=.*", "token=…", value) if isinstance(value, str) else value


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the `ROLLSCOPE_*` variables that mean nothing, each with a hint at what was meant."""
    known = {setting.variable: setting for setting in all_settings().values()}
    others = (*known, *COMMAND_VARIABLES, RAISE_VARIABLE)
    return {
        name: _hint(name, known)
        for name in environ
        if name.startswith("ROLLSCOPE_") and name not in others
    }


def _hint(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
