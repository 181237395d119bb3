"""The tree of pages, read from the lists of links on index pages.

A page called `index.md` is ordinary Markdown that reads well anywhere. For the site, the links
under each of its headings become a part of the navigation, so no second list has to be kept.
"""

import posixpath
import re
from typing import Final

__all__ = ["with_navigation"]

_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+\.md)\)")


def with_navigation(text: str, folder: str) -> str:
    """Give an index page with a hidden table of contents for each heading.

    Args:
        text: The page.
        folder: Where it is, below docs/; the first page, with an empty one, may link everywhere,
            others only to pages beside them, as each page has one place in the tree.
    """
    seen: set[str] = set()
    caption = ""
    parts = []
    pieces = _HEADING.split(text)
    for title, body in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        caption = title if not folder else ""
        entries = []
        for label, target in _LINK.findall(body):
            page = posixpath.normpath(target).removesuffix(".md")
            if page not in seen and not (folder and "/" in page):
                seen.add(page)
                entries.append(f"{label.replace('`', '')} <{page}>")
        if entries:
            parts.append(_toctree(caption, entries))
    return "\n".join([text, *parts])


def _toctree(caption: str, entries: list[str]) -> str:
    named = [f":caption: {caption}"] if caption else []
    return "\n".join(["", "```{toctree}", ":hidden:", *named, "", *entries, "```", ""])
