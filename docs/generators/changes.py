"""The changelog as a page: what is released, and before it what is not yet."""

import runpy
from typing import Final

from docs.generators.tables import DOCS

__all__ = ["changes_page"]

_MARK: Final = "<!-- changes -->"


def changes_page(text: str) -> str:
    """Give a page with the changes in the place of its mark, fragments of news first."""
    root = DOCS.parent
    joining = runpy.run_path(str(root / "scripts" / "join-news"))
    news = [path for path in (root / "news").glob("*.md") if path.name != "README.md"]
    fragments = joining["find_fragments"](root / "news") if news else {}
    waiting = joining["render_section"]("Unreleased", "", fragments) if fragments else ""
    _, _, released = (root / "CHANGELOG.md").read_text().partition("## Unreleased")
    _, heading, rest = released.partition("\n## ")
    waiting = waiting.replace("## Unreleased ()", "## Unreleased")
    return text.replace(_MARK, waiting + heading + rest)
