"""The settings: each once, with the arguments and `ROLLSCOPE_*` variables that set it.

`resolve` turns those into validated `Settings`. What the settings do is left to the parts that read
them.
"""

from rollscope.config.resolving import (
    COMMAND_VARIABLES,
    RAISE_VARIABLE,
    resolve,
    unknown_variables,
)
from rollscope.config.settings import Setting, Settings, all_settings

__all__ = [
    "COMMAND_VARIABLES",
    "RAISE_VARIABLE",
    "Setting",
    "Settings",
    "all_settings",
    "resolve",
    "unknown_variables",
]
