"""A program here and the server of its run there: what is recorded is what is read."""

from __future__ import annotations

import re
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.collecting_server import TOKEN
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_PROGRAM = """
    import sys
    import rollscope as rs

    rs.init(drain_s=0.02, payloads=True, tags={"lr": "1e-5"})
    for line in sys.stdin:
        for number in range(500):
            with rs.span(line.strip()):
                rs.payload("messages", "hello")
        assert rs.flush()
        print("recorded", flush=True)
"""


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(f"{TOKEN}\n")
    return file


def _serve(lab: Lab, token_file: Path, port: str = "0") -> tuple[subprocess.Popen[str], str]:
    """Start a server; give it and the port it listens on."""
    words = ("view", "--dir", lab.run.parent, "--port", port, "--token-file", token_file)
    server = lab.launch(lab.command(*words))
    assert server.stdout is not None
    said = server.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=", said)
    assert found is not None, said
    return server, found[1]


def _record(program: subprocess.Popen[str], name: str) -> None:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{name}\n")
    program.stdin.flush()
    assert program.stdout.readline() == "recorded\n"


def test_a_server_that_is_killed_and_comes_back_has_every_span_once(
    lab: Lab, token_file: Path, tmp_path: Path
) -> None:
    server, port = _serve(lab, token_file)
    spools = tmp_path / "spools"
    program = lab.start(
        _PROGRAM,
        env={
            "ROLLSCOPE_SINK": f"http://127.0.0.1:{port}/?token={TOKEN}",
            "ROLLSCOPE_SPOOL_DIR": str(spools),
            "ROLLSCOPE_DIR": str(tmp_path / "unused"),
        },
    )
    _record(program, "before")
    eventually(lambda: list(lab.run.glob("payloads/*.rsl")), "the first frames arrive")
    server.send_signal(signal.SIGKILL)
    server.wait()
    _record(program, "away")
    server, _ = _serve(lab, token_file, port)
    _record(program, "after")
    _, err = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, err) == (0, "")
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=PATIENCE_S)

    assert Counter(span.name for span in lab.spans()) == dict.fromkeys(
        ("before", "away", "after"), 500
    )
    assert (lab.run / "run.json").read_text().count("1e-5") == 1
    assert list(spools.iterdir()) == []
    assert not (tmp_path / "unused").exists()
