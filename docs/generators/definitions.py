"""Finds where a public name is defined, and reads the definition from the source.

Signatures and defaults are shown as they are written, which no running object can tell.
"""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = [
    "Definition",
    "Function",
    "Member",
    "about",
    "find_definition",
    "is_record",
    "members_of",
    "public_names",
]

_PACKAGE: Final = "rollscope"
_RECORDS: Final = {"Struct", "NamedTuple", "Enum", "StrEnum", "IntEnum", "Protocol"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definition:
    """A name, where it is defined."""

    name: str
    module: str
    node: ast.stmt
    doc: str


@dataclass(frozen=True)
class Member:
    """Something in the body of a class that its users may touch."""

    name: str
    node: ast.stmt
    doc: str


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module}")
    return ast.parse(Path(spec.origin).read_text())


def about(module: str) -> str:
    """Give what a module says of itself first."""
    return (ast.get_docstring(_tree(module)) or "").split("\n\n")[0]


def public_names(module: str) -> list[str]:
    """Give what a module says is public, in its order."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and _target(node) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise LookupError(f"{module} has no __all__")


def find_definition(module: str, name: str) -> Definition:
    """Follow imports of our own package to where a name is made."""
    for node, doc in _documented(_tree(module).body):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            if name in names and node.module.split(".")[0] == _PACKAGE:
                return find_definition(node.module, names[name])
        elif _target(node) == name and not _is_overload(node):
            return Definition(name, module, node, doc)
    raise LookupError(f"{module} does not define {name}")


def members_of(definition: Definition) -> list[Member]:
    """Give the public fields, methods and properties of a class, those it inherits last."""
    found: dict[str, Member] = {}
    for node, doc in _documented(getattr(definition.node, "body", [])):
        name = _target(node)
        if name and not name.startswith("_") and not _is_overload(node):
            found[name] = Member(name, node, doc)
    for base in _bases(definition):
        for member in members_of(base):
            found.setdefault(member.name, member)
    return list(found.values())


def is_record(definition: Definition) -> bool:
    """Say whether the fields of a class are what it is for."""
    node = definition.node
    names = {ast.unparse(base).split(".")[-1] for base in getattr(node, "bases", [])}
    marked = "".join(map(ast.unparse, getattr(node, "decorator_list", [])))
    return (
        bool(names & _RECORDS) or "dataclass" in marked or any(map(is_record, _bases(definition)))
    )


def _bases(definition: Definition) -> list[Definition]:
    found = []
    for base in getattr(definition.node, "bases", []):
        name = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(name, ast.Name):
            try:
                found.append(find_definition(definition.module, name.id))
            except LookupError:
                continue
    return found


def _documented(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Give each statement with its docstring, or the text that stands under it."""
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | Function):
            yield node, ast.get_docstring(node) or ""
        elif isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield node, " ".join(str(after.value.value).split())
        else:
            yield node, ""


def _is_overload(node: ast.stmt) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id == "overload"
        for one in getattr(node, "decorator_list", [])
    )


def _target(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""
