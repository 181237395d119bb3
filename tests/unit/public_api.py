"""What users program against, as text: every public name with its parameters.

Run as a module, it writes the golden file anew: `python -m tests.unit.public_api`. Types are left
out, which interpreters write in different ways; mypy watches over those.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[1] / "golden" / "public-api.txt"

PUBLIC = (
    "rollscope",
    "rollscope.errors",
    "rollscope.integrations.areal",
    "rollscope.integrations.cuda",
    "rollscope.integrations.logging",
    "rollscope.integrations.openai",
    "rollscope.integrations.rl_insight",
    "rollscope.integrations.torch",
    "rollscope.integrations.trl",
    "rollscope.integrations.verifiers",
    "rollscope.integrations.verl",
    "rollscope.integrations.xtuner",
    "rollscope.rayhub",
    "rollscope.rollout",
    "rollscope.rollout.client",
    "rollscope.rollout.reward",
    "rollscope.runner",
    "rollscope.runner.compat",
    "rollscope.runner.ray",
    "rollscope.testing",
)
_PLAIN = (str, int, float, bool, type(None))


def describe() -> list[str]:
    """Give a line for each public name of each public module, and of its classes."""
    lines: list[str] = []
    for name in PUBLIC:
        module = importlib.import_module(name)
        for exported in module.__all__:
            lines += describe_value(f"{name}.{exported}", getattr(module, exported))
    return lines


def describe_value(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value) and value.__module__.startswith("rollscope."):
        yield f"{name}{parameters(value)}" if not issubclass(value, Exception) else name
        for member in sorted(members(value)):
            yield describe_member(f"{name}.{member}", inspect.getattr_static(value, member))
    elif inspect.isroutine(value):
        yield f"{name}{parameters(value)}"
    else:
        yield name


def members(owner: type) -> set[str]:
    """Name what a class of ours has for its users, inherited or not."""
    if issubclass(owner, enum.Enum):
        return set(owner.__members__)
    ours = [base for base in owner.__mro__ if base.__module__.startswith("rollscope.")]
    return {name for base in ours for name in vars(base) if not name.startswith("_")}


def describe_member(name: str, value: Any) -> str:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    is_called = inspect.isroutine(value) and not inspect.isdatadescriptor(value)
    return f"{name}{parameters(value)}" if is_called else name


def parameters(called: Any) -> str:
    """Give the parameters with their defaults, as far as those are plain."""
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):  # of a type made in C
        return "(…)"
    shown = []
    for one in signature.parameters.values():
        default = one.default
        if default is not one.empty and not isinstance(default, _PLAIN):
            default = _Other()
        shown.append(one.replace(annotation=one.empty, default=default))
    return str(signature.replace(parameters=shown, return_annotation=signature.empty))


class _Other:
    """Stands for a default that has no text of its own."""

    def __repr__(self) -> str:
        return "…"


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in describe()))
