from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.model.batch import encode_batch
from rollscope.model.frames import pack_frame
from tests.builders import PROCESS, make_batch
from tests.collecting_server import TOKEN, CollectingServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Out = pytest.CaptureFixture[str]
HOST = os.uname().nodename
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CollectingServer]:
    monkeypatch.setenv("ROLLSCOPE_TOKEN", TOKEN)
    with CollectingServer() as server:
        yield server


def make_spool(home: Path, address: str, frames: int = 20) -> Spool:
    to = Destination(address, "lost-run", PROCESS.hex(), HOST, 42, {"lr": "1"})
    spool = Spool.make(str(home / to.process), to)
    for number in range(frames):
        spool.write(pack_frame(encode_batch(make_batch(number))))
    return spool


def test_what_is_left_is_sent_where_it_belongs(
    tmp_path: Path, server: CollectingServer, capsys: Out
) -> None:
    make_spool(tmp_path, server.address).release()
    assert main(["ship", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("run lost-run: ")
    assert said.endswith(f" KiB of process 42 of {HOST} sent to {server.address}\n")
    assert [batch.number for batch in server.batches()] == list(range(20))
    assert list(tmp_path.iterdir()) == []
    assert main(["ship", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"Nothing waits in {tmp_path}.\n"


def test_it_can_be_sent_elsewhere_and_a_single_spool_be_named(
    tmp_path: Path, server: CollectingServer, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.delenv("ROLLSCOPE_TOKEN")
    spool = make_spool(tmp_path, "ray")
    spool.release()
    assert main(["ship", spool.path]) == 1
    assert "say with --to where it is to go" in capsys.readouterr().err
    assert main(["ship", spool.path, "--to", f"{server.address}/?token={TOKEN}"]) == 0
    assert TOKEN not in capsys.readouterr().out
    assert len(server.batches()) == 20


def test_a_server_that_cannot_be_reached_is_named_and_everything_stays(
    tmp_path: Path, capsys: Out
) -> None:
    spool = make_spool(tmp_path, NOWHERE)
    spool.release()
    assert main(["ship", str(tmp_path)]) == 1
    assert f"cannot be sent to {NOWHERE}: [Errno 111]" in capsys.readouterr().err
    again = Spool.claim(spool.path)
    assert again is not None
    assert again.waiting_bytes == spool.waiting_bytes
    again.let_go()


def test_a_wrong_token_is_named(
    tmp_path: Path, server: CollectingServer, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("ROLLSCOPE_TOKEN", "wrong")
    make_spool(tmp_path, server.address).release()
    assert main(["ship", str(tmp_path)]) == 1
    assert "the token is wrong or missing (setting token); " in capsys.readouterr().err


def test_what_the_server_refuses_is_set_aside(
    tmp_path: Path, server: CollectingServer, capsys: Out
) -> None:
    server.answer = lambda handler, body: handler.respond(400, {"error": "no frames"})
    make_spool(tmp_path, server.address).release()
    assert main(["ship", str(tmp_path)]) == 1
    assert "has refused a part: no frames; see" in capsys.readouterr().err
    assert len(list(tmp_path.glob("*/refused/*.rsl"))) == 1


def test_a_busy_server_is_waited_for(tmp_path: Path, server: CollectingServer) -> None:
    asked: list[bytes] = []

    def busy(handler: Any, body: bytes) -> bool:
        asked.append(body)
        if len(asked) > 1:
            return False
        return bool(handler.respond(429, {"error": "busy"}, Retry_After="0.1"))

    server.answer = busy
    make_spool(tmp_path, server.address).release()
    assert main(["ship", str(tmp_path)]) == 0
    assert len(server.batches()) == 20


def test_the_spool_of_a_living_process_is_left_to_it(
    tmp_path: Path, server: CollectingServer, capsys: Out
) -> None:
    spool = make_spool(tmp_path, server.address)
    assert main(["ship", str(tmp_path)]) == 0
    assert "still looks after it" in capsys.readouterr().out
    assert server.taken == []
    spool.let_go()


@pytest.mark.parametrize("words", [["--to", "ray"], ["--to", "head:7077"]])
def test_only_servers_can_be_sent_to(tmp_path: Path, words: list[str], capsys: Out) -> None:
    assert main(["ship", str(tmp_path), *words]) != 0
    assert "http://HOST:PORT" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, capsys: Out) -> None:
    assert main(["ship", str(tmp_path / "nowhere")]) == 1
    assert f"no directory of spools at {tmp_path / 'nowhere'}" in capsys.readouterr().err
