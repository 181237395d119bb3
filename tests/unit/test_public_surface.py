from __future__ import annotations

import importlib
import pkgutil
import types

import pytest

import rollscope
from tests.unit.public_api import GOLDEN, PUBLIC, describe

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(rollscope.__path__, "rollscope.")
    if module.name != "rollscope.__main__"
)


def exports(module: types.ModuleType) -> list[str]:
    found: list[str] = getattr(module, "__all__", [])
    return found


@pytest.mark.parametrize("name", ["rollscope", *MODULES])
def test_every_exported_name_exists_and_is_listed_once_in_order(name: str) -> None:
    module = importlib.import_module(name)
    names = exports(module)
    assert names == sorted(set(names), key=natural)
    for exported in names:
        assert hasattr(module, exported)


def natural(name: str) -> tuple[int, str]:
    """Sort as ruff does: constants, then classes, then the rest."""
    if name.isupper():
        return 0, name
    return (1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_and_class_is_exported(name: str) -> None:
    module = importlib.import_module(name)
    # The functions of the module-level API are exported by the package itself.
    exporter = rollscope if name == "rollscope.instrument.default" else module
    assert definitions(module) <= set(exports(exporter))


def definitions(module: types.ModuleType) -> set[str]:
    """Name the functions and classes that a module defines for others."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, (type, types.FunctionType))
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


def test_users_get_exactly_these_names() -> None:
    assert rollscope.__all__ == [
        "Session",
        "Span",
        "SpanRef",
        "Tracer",
        "__version__",
        "annotate",
        "attach",
        "carry",
        "child_env",
        "count",
        "current",
        "enabled",
        "event",
        "flush",
        "gauge",
        "init",
        "inject",
        "observe",
        "open",
        "payload",
        "phase",
        "report",
        "session",
        "shutdown",
        "span",
        "stacks",
        "state",
        "step",
        "task",
        "trace",
    ]
    shown = {name for name in vars(rollscope) if not name.startswith("_")}
    parts = {module.name for module in pkgutil.iter_modules(rollscope.__path__)}
    assert shown - parts == set(rollscope.__all__) - {"__version__"}


def test_what_users_program_against_changes_on_purpose_only() -> None:
    """If it was on purpose: `python -m tests.unit.public_api`, and a fragment in news/."""
    assert describe() == GOLDEN.read_text().splitlines()


def test_the_demo_is_a_program_and_nothing_to_program_against() -> None:
    assert not [name for name in PUBLIC if name.startswith("rollscope.demo")]
    demo = importlib.import_module("rollscope.demo")
    parts = {module.name for module in pkgutil.iter_modules(demo.__path__)}
    assert {name for name in vars(demo) if not name.startswith("_")} <= parts


def test_no_part_of_the_package_shares_a_name_with_a_public_function() -> None:
    parts = {module.name for module in pkgutil.iter_modules(rollscope.__path__)}
    assert not parts & set(rollscope.__all__)


@pytest.mark.parametrize("name", [n for n in rollscope.__all__ if n != "__version__"])
def test_every_public_name_says_what_it_does(name: str) -> None:
    public = getattr(rollscope, name)
    assert public.__doc__
    assert public.__doc__.strip().splitlines()[0].endswith(".")


@pytest.mark.parametrize(
    "name",
    sorted(
        set(rollscope.__all__)
        - {"Session", "Span", "SpanRef", "Tracer", "__version__", "init", "open", "report"}
    ),
)
def test_a_tracer_of_ones_own_can_do_what_the_package_can(name: str) -> None:
    assert callable(getattr(rollscope.Tracer, name))
