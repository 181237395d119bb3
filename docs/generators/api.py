"""The reference of the Python API: one page for each public package, from its docstrings."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Final

from docs.generators.definitions import (
    Definition,
    Function,
    Member,
    about,
    find_definition,
    is_record,
    members_of,
    public_names,
)
from docs.generators.docstrings import first_sentence, rendered
from docs.generators.signatures import decorators, signature, stub, written
from docs.generators.tables import GENERATED, table

__all__ = ["MODULES", "PACKAGES", "api_page", "modules_page"]

PACKAGES: Final = {
    "api": "rollscope",
    "runner": "rollscope.runner",
    "rollout": "rollscope.rollout",
    "testing": "rollscope.testing",
    "errors": "rollscope.errors",
}
"""What programs use most, by the name of its page."""
MODULES: Final = {
    name.replace(".", "-"): f"rollscope.{name}"
    for name in (
        *("rayhub", "rollout.client", "rollout.reward", "runner.compat", "runner.ray"),
        *(f"integrations.{name}" for name in ("areal", "cuda", "logging", "openai", "rl_insight")),
        *(f"integrations.{name}" for name in ("torch", "trl", "verifiers", "verl", "xtuner")),
    )
}
"""What only some need."""


def api_page(module: str) -> str:
    """Give the page of one package: what it is for, a list of its names, each name."""
    names = [name for name in public_names(module) if not name.startswith("_")]
    definitions = [find_definition(module, name) for name in names]
    anchors = _anchors(names)
    rows = [
        (f"[`{one.name}`](#{anchor})", first_sentence(one.doc))
        for one, anchor in zip(definitions, anchors, strict=True)
    ]
    lines = [f"# `{module}`", "", GENERATED, "", about(module), "", *table(("name", ""), rows)]
    for definition in definitions:
        lines += ["", f"## {definition.name}", "", *_described(definition)]
    return "\n".join(lines).rstrip() + "\n"


def modules_page() -> str:
    """Give the page that lists the modules which only some programs need."""
    lines = ["# Other modules", "", GENERATED, ""]
    rows = [(f"[`{module}`]({page}.md)", about(module)) for page, module in MODULES.items()]
    return "\n".join([*lines, *table(("module", ""), rows)]) + "\n"


def _anchors(names: list[str]) -> list[str]:
    """Give where each heading is found: `Span` and `span` share an anchor, so one is numbered."""
    seen: Counter[str] = Counter()
    anchors = []
    for name in map(str.lower, names):
        anchors.append(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return anchors


def _described(definition: Definition) -> Iterator[str]:
    node = definition.node
    if isinstance(node, ast.ClassDef):
        yield from _class(definition, node)
        return
    if isinstance(node, Function):
        yield from _code(signature(node, definition.name))
    else:
        yield from _code(written(node))
    yield from rendered(definition.doc)


def _class(definition: Definition, node: ast.ClassDef) -> Iterator[str]:
    members = members_of(definition)
    yield from _code(_head(node))
    yield from rendered(definition.doc)
    fields = [one for one in members if isinstance(one.node, ast.AnnAssign | ast.Assign)]
    fields = fields if is_record(definition) else []  # of others they are how it works
    properties = [
        one
        for one in members
        if isinstance(one.node, Function) and "property" in decorators(one.node)
    ]
    if fields or properties:
        rows = [*map(_field_row, fields), *map(_property_row, properties)]
        yield from ("", *table(("attribute", "type", "default", ""), rows))
    for member in members:
        if isinstance(member.node, Function) and member not in properties:
            yield from ("", f"### {definition.name}.{member.name}", "")
            yield from _code(signature(member.node, member.name, is_method=True))
            yield from rendered(member.doc)


def _head(node: ast.ClassDef) -> str:
    """Write how one is made: by its constructor, or by its fields."""
    for statement in node.body:
        if isinstance(statement, Function) and statement.name == "__init__":
            made = signature(statement, node.name, is_method=True)
            return made.removeprefix("def ").removesuffix(" -> None")
    bases = ", ".join(written(base) for base in node.bases)
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def _field_row(member: Member) -> tuple[str, str, str, str]:
    node = member.node
    if isinstance(node, ast.AnnAssign):
        kind = stub(node.annotation)
        default = written(node.value) if node.value else ""
    else:
        assert isinstance(node, ast.Assign)  # noqa: S101  (what fields are)
        kind, default = "", written(node.value)
    return f"`{member.name}`", _quoted(kind), _quoted(default), member.doc


def _property_row(member: Member) -> tuple[str, str, str, str]:
    assert isinstance(member.node, Function)  # noqa: S101  (what properties are)
    kind = stub(member.node.returns) if member.node.returns else ""
    return f"`{member.name}`", _quoted(kind), "", first_sentence(member.doc)


def _quoted(text: str) -> str:
    return f"`{text}`" if text else ""


def _code(text: str) -> Iterator[str]:
    yield from ("```python", text, "```", "")
