from __future__ import annotations

import email
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rollscope
from tests.packaging.environments import ROOT, attempt, install, installed, library_of, run

if TYPE_CHECKING:
    from email.message import Message


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
    """Install the wheel as a trainer would and give its interpreter."""
    return install(wheel, tmp_path_factory.mktemp("empty"))


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
    assert installed(library_of(python)) == {"msgspec", "rollscope"}
    done = run(python, "-c", _RECORDING, cwd=tmp_path)
    assert (json.loads(done.stdout), done.stderr) == (["msgspec", "rollscope"], "")
    out = run(python.with_name("rollscope"), "cat", "r", cwd=tmp_path).stdout
    assert '"name":"x"' in out


_RECORDING = """
import json, sys
before = set(sys.modules)
import rollscope as rs
rs.init(run="r")
with rs.task("sum/1"), rs.session(), rs.phase("x"):
    rs.payload("prompt", "1+1")
rs.count("n")
rs.shutdown()
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(loaded - sys.stdlib_module_names)))
"""


@pytest.mark.parametrize(
    ("command", "extra"), [("steps", "server"), ("view", "server"), ("demo", "demo")]
)
def test_a_command_that_needs_more_says_how_to_get_it(
    python: Path, tmp_path: Path, command: str, extra: str
) -> None:
    done = attempt(python.with_name("rollscope"), command, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"; install with: pip install 'rollscope[{extra}]'\n")
