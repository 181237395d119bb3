from __future__ import annotations

import email
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

import rollscope

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that knows nothing of this checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the tree."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, cwd=ROOT)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an empty environment and give its interpreter."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home / "env", with_pip=False, symlinks=True)
    interpreter = home / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", wheel, cwd=home)
    (library,) = (home / "env" / "lib").glob("python*/site-packages")
    # The one dependency is lent from here, so that no network is needed.
    (library / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    return interpreter


def test_the_wheel_is_pure_and_carries_the_version(wheel: Path) -> None:
    assert wheel.name == f"rollscope-{rollscope.__version__}-py3-none-any.whl"


def test_one_top_level_name_is_installed(names: list[str]) -> None:
    info = f"rollscope-{rollscope.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"rollscope", info}


def test_every_module_is_inside_and_nothing_else(names: list[str]) -> None:
    source = ROOT / "src"
    files = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == files


def test_types_and_licence_are_inside(names: list[str]) -> None:
    assert "rollscope/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_a_trainer_is_asked_to_install_msgspec_and_nothing_else(metadata: Message) -> None:
    required = [name for name in metadata.get_all("Requires-Dist", []) if "extra ==" not in name]
    assert [name.partition(">")[0] for name in required] == ["msgspec"]
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_readme_is_the_description(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text().strip()


def test_the_package_is_imported_from_the_empty_environment(python: Path, tmp_path: Path) -> None:
    code = "import rollscope, sys; print(rollscope.__file__, rollscope.__version__)"
    file, version = run(python, "-c", code, cwd=tmp_path).stdout.split()
    assert Path(file).is_relative_to(python.parents[1])
    assert version == rollscope.__version__


def test_the_command_explains_itself(python: Path, tmp_path: Path) -> None:
    out = run(python.with_name("rollscope"), "--help", cwd=tmp_path).stdout
    assert "usage: rollscope" in out
    assert "cat" in out
    assert run(python, "-m", "rollscope", "--help", cwd=tmp_path).stdout == out


def test_a_run_is_recorded_and_read_with_no_more_than_the_wheel(
    python: Path, tmp_path: Path
) -> None:
    code = "import rollscope as rs; rs.init(run='r')\nwith rs.span('x'): pass"
    run(python, "-c", code, cwd=tmp_path)
    out = run(python.with_name("rollscope"), "cat", "r", cwd=tmp_path).stdout
    assert '"name":"x"' in out
