"""Every text that stands in the code, for pages that explain messages."""

import ast
from functools import cache

from tests.docs.walking import ROOT


@cache
def spoken_texts() -> str:
    """Give the texts on lines of their own."""
    texts = [
        node.value
        for file in (ROOT / "src" / "rollscope").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join(texts)
