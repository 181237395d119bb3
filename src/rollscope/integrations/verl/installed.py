"""Importing this module calls `install()`, for `VERL_USE_EXTERNAL_MODULES`.

What goes wrong is told and does not stop verl.
"""

from rollscope.instrument.guard import tell
from rollscope.integrations.verl import install

__all__: list[str] = []

try:
    install()
except (ImportError, RuntimeError) as error:
    tell("Rollscope does not trace verl: %s", error)
