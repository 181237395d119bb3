"""Signatures of functions and fields as Python, one line or one parameter a line."""

import ast
import re
from typing import Final

from docs.generators.definitions import Function

__all__ = ["decorators", "signature", "stub", "written"]

_WIDTH: Final = 88
_QUOTED: Final = re.compile(r"'([^'\"\\]*)'")
_SHOWN_DECORATORS: Final = {"property", "classmethod", "staticmethod"}


def decorators(node: Function) -> set[str]:
    """Give those that change how it is used."""
    names = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
    return names & _SHOWN_DECORATORS


def signature(node: Function, name: str, *, is_method: bool = False) -> str:
    """Write what a function takes and gives."""
    parts = _parameters(node.args)
    if is_method and "staticmethod" not in decorators(node):
        parts = parts[1:]
        if parts[:1] == ["/"]:
            parts = parts[1:]
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    gives = f" -> {stub(node.returns)}" if node.returns else ""
    line = f"{prefix} {name}({', '.join(parts)}){gives}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{prefix} {name}(", *(f"    {part}," for part in parts), f"){gives}"])


def stub(node: ast.expr) -> str:
    """Write an expression as it stands, an annotation in quotes without them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return written(node)


def written(node: ast.AST) -> str:
    """Write any code with the quotes that the source has."""
    return _QUOTED.sub(r'"\1"', ast.unparse(node))


def _parameters(args: ast.arguments) -> list[str]:
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    defaults += args.defaults
    parts = [_one(arg, default) for arg, default in zip(plain, defaults, strict=True)]
    if args.posonlyargs:
        parts.insert(len(args.posonlyargs), "/")
    if args.vararg:
        parts.append("*" + _one(args.vararg, None))
    elif args.kwonlyargs:
        parts.append("*")
    parts += [
        _one(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    if args.kwarg:
        parts.append("**" + _one(args.kwarg, None))
    return parts


def _one(arg: ast.arg, default: ast.expr | None) -> str:
    text = arg.arg + (f": {stub(arg.annotation)}" if arg.annotation else "")
    if default is None:
        return text
    return text + (" = " if arg.annotation else "=") + written(default)
