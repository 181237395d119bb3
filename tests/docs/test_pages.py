"""What the documentation shows is what happens."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollscope.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def test_generated_pages_are_up_to_date() -> None:
    script = ROOT / "scripts" / "write-docs"
    checked = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout


def test_the_example_of_the_readme_records_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True, timeout=30)

    assert main(["cat", str(tmp_path / "runs" / "first")]) == 0

    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ended = [r for r in records if r["record"] == "span" and r["end_ns"] is not None]
    phases = [(r["task_key"], r["name"], r["status"]) for r in ended if r["kind"] == "phase"]
    assert phases == [("gsm8k/8421", "generate", "ok"), ("gsm8k/8421", "reward", "ok")]
    (session,) = [r for r in ended if r["kind"] == "session"]
    assert session["outcome"] == "accepted"
    assert session["attrs"] == {"reward": 1.0}


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_adrs_keep_to_their_form() -> None:
    for page in (ROOT / "docs" / "adr").glob("*.md"):
        heads = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert heads == ["Context", "Decision", "Consequences"], page.name


def test_the_examples_of_the_definitions_hold() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "analysis.md").read_text(), re.S)
    assert len(blocks) >= 6
    subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=True, timeout=60)
