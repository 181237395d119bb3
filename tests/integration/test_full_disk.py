"""A disk that is full for a while: no torn frame, no crash, and what is lost is counted."""

from __future__ import annotations

import resource
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.integration.support import PATIENCE_S, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DISK_BYTES = 4 * 2**20
_LOG_BYTES = 600_000
"""How much of the log fits before the disk is full."""

_PROGRAM = """
    import resource, sys, time
    import rollscope as rs

    def record(name, number):
        for at in range(number):
            with rs.span(name, text="x" * 200):
                pass
            if at % 500 == 0:
                time.sleep(0.01)

    rs.init(buffer_mb=1, drain_s=0.05)
    record("early", 1000)
    assert rs.flush(20)
    record("meanwhile", 10_000)
    assert not rs.flush(0.5)
    print("full")
    limit = int(sys.stdin.readline())
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    record("late", 1000)
    assert rs.flush(20)
"""


def _may_mount() -> bool:
    """Say whether this process has the right to mount (CAP_SYS_ADMIN)."""
    with open("/proc/self/status") as file:
        (held,) = [line.split()[1] for line in file if line.startswith("CapEff:")]
    return bool(int(held, 16) >> 21 & 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of its own that has room for the beginning of a log only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        (disk / "filler").write_bytes(bytes(_DISK_BYTES - _LOG_BYTES))
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _check(lab: Lab, program: subprocess.Popen[str], free: str, error: str) -> None:
    """Let the program go on, and check what it leaves behind."""
    _, err = program.communicate(f"{free}\n", timeout=PATIENCE_S)
    assert program.returncode == 0, err
    (cannot,) = err.splitlines()
    assert error in cannot

    spans = Counter(span.name for span in lab.spans())  # which finds no damage in the log
    (dropped,) = lab.read().drops.values()
    assert spans["early"] == 1000
    assert spans["late"] > 0
    assert spans["meanwhile"] + spans["late"] + dropped["span.slow_sink"] == 11_000
    assert dropped.keys() <= {"span.slow_sink", "start.slow_sink"}


def _wait_until_full(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    assert program.stdout.readline() == "full\n"


if _may_mount():

    def test_a_full_file_system_tears_no_frame_and_costs_only_what_is_counted(
        lab: Lab, small_disk: Path
    ) -> None:
        lab.run = small_disk / "runs" / "run"
        program = lab.start(_PROGRAM)
        _wait_until_full(program)

        (small_disk / "filler").unlink()
        _check(lab, program, "0", "OSError: [Errno 28] No space left on device")


def test_a_limit_on_file_sizes_tears_no_frame_and_costs_only_what_is_counted(lab: Lab) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LOG_BYTES, 2**30))

    program = lab.start(_PROGRAM, preexec_fn=limit)
    _wait_until_full(program)
    (log,) = lab.run.glob("log/*.rsl")
    assert log.stat().st_size <= _LOG_BYTES

    _check(lab, program, str(2**30), "OSError: [Errno 27] File too large")
