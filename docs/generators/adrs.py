"""The list of decisions."""

from docs.generators.tables import DOCS, GENERATED

__all__ = ["adrs_page"]


def adrs_page() -> str:
    """Give the page that lists the records of decisions, the newest last."""
    lines = [
        "# Decisions",
        "",
        GENERATED,
        "",
        "What was weighed when it was made. A later record may supersede one; none is edited.",
        "",
    ]
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title = path.read_text().splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"
