"""How Sphinx makes the site from the pages of this folder: `make docs`."""

import posixpath
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs.generators.changes import changes_page
from docs.generators.navigation import with_navigation
from rollscope import __version__

project = "Rollscope"
author = "The Rollscope contributors"
project_copyright = author
version = release = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["generators"]
highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
# Options and quoted values stay as they are typed.
smartquotes = False
# Deep enough for every heading that another page links to.
myst_heading_anchors = 4
# Markdown has no way to say how large a picture is.
myst_enable_extensions = ["html_image"]

html_theme = "furo"
html_title = "Rollscope"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_theme_options = {
    # As on the page that `rollscope view` serves.
    "light_css_variables": {
        "color-brand-primary": "#2f57c4",
        "color-brand-content": "#2f57c4",
        "color-brand-visited": "#2f57c4",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono',"
        " monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fa2ff",
        "color-brand-content": "#7fa2ff",
        "color-brand-visited": "#7fa2ff",
    },
}


def _complete(_: Sphinx, name: str, content: list[str]) -> None:
    """Give pages what only the site has: navigation, and changes that wait for a release."""
    folder, page = posixpath.split(name)
    if page == "index":
        content[0] = with_navigation(content[0], folder)
    elif name == "changelog":
        content[0] = changes_page(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Follow the reading of pages."""
    app.connect("source-read", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
