"""The walker sees what a reader sees, and the generators write what the code says."""

import subprocess
import sys
from pathlib import Path

import pytest

from docs.generators.api import MODULES, PACKAGES, api_page
from docs.generators.docstrings import rendered
from docs.generators.navigation import with_navigation
from tests.docs.walking import ROOT, Block, blocks, commands
from tests.unit.public_api import PUBLIC

PAGE = """# Title

```python
one = 1
```

<!-- not run: needs a GPU -->

```python
two
```

- in a list:

  ```
  $ rollscope show a/1#2 | head
  rollscope said this
  ```
"""


def written(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_blocks_have_their_line_and_their_mark(tmp_path: Path) -> None:
    assert list(blocks(written(tmp_path, PAGE))) == [
        Block(4, "python", "one = 1\n"),
        Block(10, "python", "two\n", is_run=False),
        Block(16, "", "$ rollscope show a/1#2 | head\nrollscope said this\n"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$ rollscope show a/1#2 | head\nrollscope said this\n", [["show", "a/1#2"]]),
        ("head$ rollscope view --dir runs    # stays\n", [["view", "--dir", "runs"]]),
        ("rollscope sql      a prompt\n", [["sql"]]),
        (
            "rollscope sql -c 'SELECT 1 > 0;\n FROM x' > out\n",
            [["sql", "-c", "SELECT 1 > 0;\n FROM x"]],
        ),
        ("member  state\nrollscope server stop ends it.\n", []),
    ],
)
def test_commands_end_where_the_shell_ends_them(text: str, found: list[list[str]]) -> None:
    assert commands(Block(1, "", text)) == found


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```python\nfine = 1\nraise ValueError('no')\n```\n", 'page.md", line 3'),
        ("```text\n$ rollscope steps runs/none\n```\n", "page.md, line 2"),
    ],
)
def test_a_page_that_fails_names_its_line(tmp_path: Path, block: str, said: str) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tests/docs/run_page.py", written(tmp_path, block), "--commands"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 1
    assert said in ran.stderr


def test_links_of_an_index_become_the_navigation() -> None:
    page = "# All\n\n## First\n\n- [`A`](a.md): text, [again](a.md)\n- [b](x/b.md)\n\n## None\n"
    added = with_navigation(page, "").removeprefix(page)

    assert added.split("\n")[2:8] == [
        "```{toctree}",
        ":hidden:",
        ":caption: First",
        "",
        "A <a>",
        "b <x/b>",
    ]
    assert added.count("toctree") == 1
    assert "x/b" not in with_navigation(page, "folder").removeprefix(page)


def test_sections_of_docstrings_become_lists() -> None:
    doc = "Do it.\n\nArgs:\n    **rest: What\n        else.\n\nRaises:\n    OddError: It is odd."

    assert rendered(doc) == [
        *("Do it.", "", "**Parameters**", "", "- `**rest`: What", "  else.", ""),
        *("**Raises**", "", "- `OddError`: It is odd."),
    ]


def test_every_public_module_has_a_page() -> None:
    assert sorted((*PACKAGES.values(), *MODULES.values())) == sorted(PUBLIC)


def test_the_reference_has_every_public_name_as_it_is_written() -> None:
    page = api_page("rollscope.runner")

    assert "| [`Runner`](#runner) | Runs coroutines from sync or async code" in page
    assert "    age_policy: AgePolicy | str = AgePolicy.ACCEPT,\n" in page
    assert "### Runner.submit\n\n```python\ndef submit(fn: Callable[..., Any], /, *args" in page
    assert "| `versions` | `tuple[int, ...]` |  | One per segment: more than one" in page
    assert "[`span`](#span-1)" in api_page("rollscope")
