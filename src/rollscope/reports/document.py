"""The HTML file itself: the built page with its style, its code and the data put inside.

Data stands in script elements of a type that no browser runs, as base64, in which nothing can end
an element. A policy in the head names the one style and the one script by their hashes, so that
nothing else can run and nothing at all can be asked for.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final

from rollscope.errors import MissingExtra
from rollscope.webui import INDEX, read_asset

__all__ = ["DATA_TYPE", "Shell", "data_element", "read_shell"]

DATA_TYPE: Final = "application/octet-stream"
_STYLE: Final = re.compile(r'<link rel="stylesheet" href="app\.css" ?/?>')
_SCRIPT: Final = re.compile(r'<script defer src="app\.js"></script>')
_CHARSET: Final = re.compile(r'<meta charset="utf-8" ?/?>')
_POLICY: Final = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


class Shell:
    """The page around the data: what comes before it, and what comes behind."""

    def __init__(self, before: str, behind: str) -> None:
        self.before: Final = before.encode()
        self.behind: Final = behind.encode()


def read_shell() -> Shell:
    """Read the built page, and put its parts into one file.

    Raises:
        MissingExtra: The page was not built, or is not one that this can be done with.
    """
    index = read_asset(INDEX).decode()
    style = _one_kind_of_line(read_asset("app.css").decode())
    script = _one_kind_of_line(_unable_to_end(read_asset("report.js").decode()))
    if "</style" in style.lower():
        raise MissingExtra("the page's style cannot be put into a report: it ends its element")
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    rule = f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
    page = _replace(_CHARSET, f'<meta charset="utf-8" />\n    {rule}', index)
    page = _replace(_STYLE, f"<style>{style}</style>", page)
    page = _replace(_SCRIPT, '<meta name="referrer" content="no-referrer" />', page)
    before, found, behind = page.rpartition("</body>")
    if not found:
        raise MissingExtra("the page cannot be put into a report: its body does not end")
    return Shell(before, f"<script>{script}</script>\n{found}{behind}")


def data_element(name: str, content: bytes) -> Iterable[bytes]:
    """Give a script element that only holds bytes."""
    yield f'<script type="{DATA_TYPE}" id="{name}">'.encode()
    yield base64.b64encode(content)
    yield b"</script>\n"


def _replace(pattern: re.Pattern[str], text: str, page: str) -> str:
    made, count = pattern.subn(lambda _: text, page, count=1)
    if not count:
        raise MissingExtra(
            f"the page cannot be put into a report: it has no {pattern.pattern!r}; build it with "
            "`make web`"
        )
    return made


def _unable_to_end(script: str) -> str:
    """Keep text in the code from ending its element; both ways of writing mean the same there."""
    script = re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)
    return script.replace("<!--", "<\\!--")


def _one_kind_of_line(text: str) -> str:
    """Write lines as the browser reads them, since the hash is taken of what it reads."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
