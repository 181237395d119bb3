"""Empty environments with the built wheel, and what an extra asks for lent from this one.

No network is needed, and nothing is there that nobody asked for: distributions are lent file by
file, so that not even what shares a folder with them comes along.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that knows nothing of this checkout, and must not fail."""
    done = attempt(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def attempt(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that knows nothing of this checkout."""
    return subprocess.run(
        command, cwd=cwd, env=environ_of(command[0]), capture_output=True, text=True, timeout=120
    )


def environ_of(program: str | Path) -> dict[str, str]:
    """Give the environment of a program: no other is on its path, no node among them."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.startswith("ROLLSCOPE")
    }
    return {**kept, "PATH": str(Path(program).parent)}


def build_wheel(out: Path) -> Path:
    """Build the wheel from the tree."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, cwd=ROOT)
    (built,) = out.iterdir()
    return built


def install(wheel: Path, home: Path, *extras: str) -> Path:
    """Install the wheel with its dependencies into an empty environment; give its interpreter."""
    venv.create(home / "env", with_pip=False, symlinks=True)
    interpreter = home / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", wheel, cwd=home)
    library = library_of(interpreter)
    for name in needed(library, *extras):
        lend(name, library)
    return interpreter


def library_of(interpreter: Path) -> Path:
    (library,) = interpreter.parents[1].glob("lib/python*/site-packages")
    return library


def installed(library: Path) -> set[str]:
    """Name the distributions in a library."""
    return {one.name.lower() for one in distributions(path=[str(library)])}


def needed(library: Path, *extras: str) -> set[str]:
    """Name all distributions that the wheel in a library asks for, directly or not."""
    (ours,) = distributions(path=[str(library)])
    found: set[tuple[str, str]] = set()
    waiting = [("rollscope", extra) for extra in ("", *extras)]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        asking = ours if one[0] == "rollscope" else distribution(one[0])
        for text in asking.requires or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": one[1]}):
                waiting += [(asked.name.lower(), extra) for extra in ("", *asked.extras)]
    return {name for name, _ in found} - {"rollscope"}


def lend(name: str, library: Path) -> None:
    """Link the files of an installed distribution, and their bytecode, into a library."""
    lent = distribution(name)
    for file in lent.files or ():
        source = Path(str(lent.locate_file(file)))
        if ".." in file.parts or file.suffix == ".pyc" or not source.is_file():
            continue  # programs are not lent
        link(source, library / file)
        if file.suffix == ".py":
            compiled = Path(importlib.util.cache_from_source(str(source)))
            if compiled.is_file():
                link(compiled, library / file.parent / "__pycache__" / compiled.name)


def link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        target.symlink_to(source)
