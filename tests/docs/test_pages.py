"""What the documentation shows is what happens."""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from rollscope.cli.main import main
from tests.docs.walking import ROOT, blocks, pages


def test_the_example_of_the_readme_records_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (
        block.text for block in blocks(ROOT / "README.md") if 'rs.init(run="first")' in block.text
    )
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True, timeout=30)

    assert main(["cat", str(tmp_path / "runs" / "first")]) == 0

    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ended = [r for r in records if r["record"] == "span" and r["end_ns"] is not None]
    phases = Counter((r["name"], r["status"]) for r in ended if r["kind"] == "phase")
    assert phases == dict.fromkeys([(n, "ok") for n in ("generate", "toolcall", "reward")], 128)
    assert sorted(r["step"] for r in ended if r["kind"] == "step") == [0, 1, 2, 3]
    sessions = [r for r in ended if r["kind"] == "session"]
    assert {session["outcome"] for session in sessions} == {"accepted"}
    assert all(session["attrs"] == {"reward": 1.0} for session in sessions)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Give where headings can be linked at, as sites that show Markdown name them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]
    return {*slugs, *(f"{slug}-{count - 1}" for slug, count in Counter(slugs).items() if count > 1)}


def test_adrs_keep_to_their_form() -> None:
    for page in (ROOT / "docs" / "adr").glob("[0-9]*.md"):
        heads = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert heads == ["Context", "Decision", "Consequences"], page.name


def test_the_architecture_lists_every_package_from_the_top_down() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    depths = {
        name: depth for depth, layer in enumerate(layers) for name in re.findall(r"\w+", layer)
    }
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page[page.index("| package | owns |") :].split("\n\n")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(listed) == sorted(depths)
    assert [depths[name] for name in listed] == sorted(depths.values())
