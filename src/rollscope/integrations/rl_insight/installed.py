"""Importing this module installs the stand-in as `rl_insight`.

For programs that import modules by name, as verl does with `VERL_USE_EXTERNAL_MODULES`.
"""

from rollscope.integrations.rl_insight import install

__all__: list[str] = []

install()
