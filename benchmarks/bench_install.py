"""How large Rollscope is once it is installed, and how long its commands take to start.

    python benchmarks/bench_install.py [--rounds N]

The wheel is built and installed with pip into empty environments: alone, as a trainer has it, and
with the extras `server` and `demo`; that needs the network, or what pip has cached. *MB* is all
that came to the environment, bytecode included; *ours* is the part of it that is Rollscope.

*trainer* stands for the environment with nothing else, *reader* for that with `server`. Times are
those of whole processes, CPU of all threads, and the interpreter's own start is the measure. All
come in turns; medians count. `steps` answers for a run of three steps with eight sessions each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, NamedTuple

from reporting import print_table, to_json

_ROOT: Final = Path(__file__).resolve().parents[1]
_SETS: Final = ("", "server", "demo")
_RECORD: Final = """
import rollscope as rs
rs.init(run="small")
for step in range(3):
    with rs.step(step):
        for sample in range(8):
            with rs.task("sum/1"), rs.session(sample=sample), rs.phase("generate"):
                pass
"""


class Installed(NamedTuple):
    """An environment."""

    python: Path
    took_s: float
    packages: int
    mb: float
    ours_mb: float


class Cost(NamedTuple):
    """What one process took."""

    wall_ms: float
    cpu_ms: float


def build_wheel(out: Path) -> Path:
    """Build the wheel from the tree."""
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", str(out), "."]
    subprocess.run(command, cwd=_ROOT, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def install(wheel: Path, extra: str, home: Path) -> Installed:
    """Install into an empty environment, and weigh it."""
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq"]
    began = time.perf_counter()
    subprocess.run([*command, f"{wheel}[{extra}]" if extra else str(wheel)], check=True)
    took_s = time.perf_counter() - began
    (library,) = home.glob("lib/python*/site-packages")
    packages = len(list(distributions(path=[str(library)])))
    return Installed(python, took_s, packages, weigh_mb(library), weigh_mb(library / "rollscope"))


def weigh_mb(folder: Path) -> float:
    """Give the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def time_process(command: list[str], cwd: Path) -> Cost:
    """Run a command that must not fail; give what it took."""
    hidden = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Cost(1e3 * wall_s, 1e3 * (used.ru_utime + used.ru_stime))


def time_starts(trainer: Path, reader: Path, cwd: Path, rounds: int) -> dict[str, Cost]:
    """Time commands in turns; give the medians."""
    subprocess.run([str(trainer), "-c", _RECORD], cwd=cwd, check=True)
    here, there = str(trainer.with_name("rollscope")), str(reader.with_name("rollscope"))
    commands = {
        "python -c pass": [str(trainer), "-c", "pass"],
        "import msgspec": [str(trainer), "-c", "import msgspec"],
        "import rollscope": [str(trainer), "-c", "import rollscope"],
        "trainer: rollscope --help": [here, "--help"],
        "reader: rollscope --help": [there, "--help"],
        "reader: rollscope steps": [there, "steps", "runs/small"],
    }
    for command in commands.values():  # writes bytecode, and reads all files once
        time_process(command, cwd)
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(time_process(command, cwd))
    return {
        name: Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))
        for name, costs in taken.items()
    }


def main() -> None:
    """Install, weigh, start, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure what an installation takes.")
    parser.add_argument("--rounds", type=int, default=21, help="starts of each command")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheel(folder / "dist")
        made = {extra: install(wheel, extra, folder / f"env-{extra}") for extra in _SETS}
        starts = time_starts(made[""].python, made["server"].python, folder, rounds)
        wheel_mb = wheel.stat().st_size / 1e6
    rows = [
        [
            f"rollscope[{extra}]" if extra else "rollscope",
            str(one.packages),
            f"{one.mb:.1f}",
            f"{one.ours_mb:.1f}",
            f"{one.took_s:.0f}",
        ]
        for extra, one in made.items()
    ]
    print_table(
        f"Installed from a wheel of {wheel_mb:.1f} MB", ["", "packages", "MB", "ours", "s"], rows
    )
    least = starts["python -c pass"].cpu_ms
    rows = [
        [name, f"{cost.wall_ms:.0f}", f"{cost.cpu_ms:.0f}", f"{cost.cpu_ms / least:.1f}"]
        for name, cost in starts.items()
    ]
    print_table(f"Started {rounds} times", ["", "ms", "CPU ms", "of python"], rows)
    sizes = {f"mb_{extra or 'alone'}": one.mb for extra, one in made.items()}
    times = {f"cpu_ms {name}": cost.cpu_ms for name, cost in starts.items()}
    print(to_json("install", {"wheel_mb": wheel_mb, **sizes, **times}))


if __name__ == "__main__":
    main()
