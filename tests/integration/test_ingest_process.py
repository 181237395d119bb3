"""A receiver as a process of its own: killed, restarted, with TLS, on two ports."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from tests.builders import PROCESS, frame_of, make_batch, make_header, make_row, span_batch
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = re.compile(r"(https?)://([\d.]+):(\d+)/(?:\?token=(\S+))?")
FRAMES = [
    frame_of(make_batch(0, header=make_header(host="far", pid=1))),
    *(frame_of(span_batch(n, *(make_row(50 * n + at) for at in range(50)))) for n in range(1, 400)),
]


def start(lab: Lab, *args: object) -> tuple[subprocess.Popen[str], int]:
    """Start a server and give the port that it says."""
    process = lab.launch(lab.command("view", "--dir", lab.run.parent, "--no-token", *args))
    assert process.stdout is not None
    address = ADDRESS.search(process.stdout.readline())
    assert address is not None
    return process, int(address[3])


def post(connection: http.client.HTTPConnection, body: bytes) -> tuple[int, Any]:
    headers = {
        "Content-Type": "application/x-rollscope-frames",
        "Rollscope-Run": "run",
        "Rollscope-Process": PROCESS.hex(),
    }
    connection.request("POST", "/v1/ingest", body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Sender(threading.Thread):
    """Sends frames one by one, and each until it is taken, as the sink of a program does."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.taken = 0

    def run(self) -> None:
        for frame in FRAMES:
            while not self._send(frame):
                time.sleep(0.02)  # as senders do while nobody listens
            self.taken += 1

    def has_sent(self, frames: int) -> bool:
        return self.taken > frames

    def _send(self, frame: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            return post(connection, frame)[0] == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def test_no_frame_is_lost_or_doubled_by_servers_that_are_killed(lab: Lab) -> None:
    port = free_port()
    process, _ = start(lab, "--port", port)
    sender = Sender(port)
    sender.start()
    for share in (50, 150, 300):
        eventually(partial(sender.has_sent, share), f"{share} frames are sent")
        process.send_signal(signal.SIGKILL if share < 300 else signal.SIGTERM)
        process.wait(PATIENCE_S)
        log = lab.run / "log" / "far-1-00000001.rsl"
        if share == 50:
            with log.open("ab") as file:  # as if killed amid a write
                file.write(FRAMES[-1][:100])
        process, _ = start(lab, "--port", port)
    sender.join(PATIENCE_S)
    assert not sender.is_alive()

    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert log.read_bytes() == b"".join(FRAMES)
    assert lab.read().problems == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("tls")
    cert, key = place / "cert.pem", place / "key.pem"
    words = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    )
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", *words.split(), *names], check=True, capture_output=True)
    return cert, key


def test_with_a_certificate_everything_is_tls_on_both_ports(
    lab: Lab, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        options = ["--certfile", cert, "--keyfile", key, "--otlp-port", busy, "--port", 0]
        process, port = start(lab, *options)
    assert process.stdout is not None
    also = next(re.search(r"port (\d+) too", line) for line in process.stdout if "too." in line)
    assert also is not None
    assert int(also[1]) != busy

    trusting = ssl.create_default_context(cafile=str(cert))
    for each, frame in ((port, FRAMES[0]), (int(also[1]), FRAMES[1])):
        secure = http.client.HTTPSConnection(
            "127.0.0.1", each, context=trusting, timeout=PATIENCE_S
        )
        assert post(secure, frame)[0] == 200
        assert post(secure, frame)[1]["doubled"] == 1  # over the same connection
        secure.close()
    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with pytest.raises((OSError, http.client.HTTPException)):
        post(plain, FRAMES[2])
    plain.close()
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--keyfile", "k"], "needs --certfile"),
        (["--certfile", "none.pem"], "cannot use the certificate none.pem: No such file"),
        (["--certfile", __file__], "cannot use the certificate"),
        (["nowhere"], "rollscope view --dir nowhere"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_sentence(
    args: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", "--port", "0", *args]) in (1, 2)
    assert told in capsys.readouterr().err
