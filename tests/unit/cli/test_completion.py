from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rollscope.cli import main as module
from rollscope.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_knows_every_command(shell: str, capsys: Out) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in module._COMMANDS:
        assert command.name in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_and_names_of_runs(tmp_path: Path, capsys: Out) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "runs" / "grpo-7b").mkdir(parents=True)

    def complete(*words: str) -> list[str]:
        listed = " ".join(f"'{word}'" for word in words)
        code = f"""
source ./script
COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}
_shtab_rollscope 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(
            ["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert complete("rollscope", "do") == ["doctor"]
    assert complete("rollscope", "doctor", "gr") == ["grpo-7b"]
    assert complete("rollscope", "cat", "gr") == ["grpo-7b"]
