from __future__ import annotations

import fcntl
import http.server
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rollscope.stack import configfile, update_prometheus_config
from rollscope.stack.reloading import Peer, reload_prometheus
from tests.monitoring.prometheus import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = "# Ours.\nscrape_configs:\n- job_name: own\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "prometheus.yml"
    path.write_text(CONFIG)
    return path


def update(config: Path, *addresses: str, **given: Any) -> Any:
    return update_prometheus_config(
        addresses, **{"config_file": config, "mode": "off", "job_name": "vllm", **given}
    )


def groups(config: Path) -> Any:
    return json.loads((config.parent / "rollscope-targets" / "vllm.json").read_text())


def test_addresses_and_labels_are_written_for_prometheus(config: Path) -> None:
    done = update(config, "10.0.0.1:8000", "https://h/m", labels=[{"rank": 0, "a-b": "x"}, {}])

    assert done.is_done
    assert done.targets == 2
    assert groups(config) == [
        {
            "targets": ["10.0.0.1:8000"],
            "labels": {
                "rank": "0",
                "a_b": "x",
                "__scheme__": "http",
                "__metrics_path__": "/metrics",
            },
        },
        {"targets": ["h:443"], "labels": {"__scheme__": "https", "__metrics_path__": "/m"}},
    ]


def test_the_configuration_is_changed_once_and_kept_as_it_was_beside_it(config: Path) -> None:
    config.chmod(0o640)
    first, second = update(config, "h:1"), update(config, "h:2")

    assert (first.nodes[0].is_job_added, second.nodes[0].is_job_added) == (True, False)
    assert (tmp := config.parent / first.nodes[0].backup).read_text() == CONFIG
    assert config.stat().st_mode & 0o777 == 0o640
    assert [group["targets"] for group in groups(config)] == [["h:2"]]
    names = {path.name for path in config.parent.iterdir()}
    assert names == {"prometheus.yml", "rollscope-targets", tmp.name}


def test_no_copy_of_a_configuration_is_ever_readable_for_others(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.chmod(0o600)
    seen: list[int] = []
    monkeypatch.setattr(
        configfile, "_check", lambda draft: seen.append(draft.stat().st_mode & 0o777)
    )
    done = update(config, "h:1")

    assert seen == [0o600]
    assert Path(done.nodes[0].backup).stat().st_mode & 0o777 == 0o600


def test_calls_at_the_same_time_do_not_undo_each_other(config: Path) -> None:
    jobs = [f"job{number}" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda job: update(config, "h:1", job_name=job), jobs))

    assert all(one.is_done for one in done)
    assert len({one.nodes[0].backup for one in done}) == 8
    written = yaml.safe_load(config.read_text())["scrape_configs"]
    assert sorted(one["job_name"] for one in written) == [*jobs, "own"]
    assert CONFIG in {Path(one.nodes[0].backup).read_text() for one in done}


def test_a_link_is_followed_and_targets_stand_where_prometheus_looks_for_them(
    config: Path, tmp_path: Path
) -> None:
    link = tmp_path / "other" / "prometheus.yml"
    link.parent.mkdir()
    link.symlink_to(config)

    assert update(link, "h:1").is_done
    assert link.is_symlink()
    assert groups(link)[0]["targets"] == ["h:1"]
    assert "rollscope-targets/vllm.json" in config.read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": [{}]},
        {"mode": "none"},
        {"job_name": ""},
        {"job_name": "a\nb"},
        {"server_addresses": ["file:///etc/passwd"]},
        {"server_addresses": ["http://me:secret@h/"]},
        {"server_addresses": ["h:1/m?token=x"]},
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_raise_and_change_nothing(
    config: Path, wrong: dict[str, Any]
) -> None:
    given = {"server_addresses": ["h:1", "h:2"], "config_file": config, "mode": "off", **wrong}
    with pytest.raises(ValueError, match=r"\w") as raised:
        update_prometheus_config(**given)

    assert "secret" not in str(raised.value)
    assert list(config.parent.iterdir()) == [config]


def test_no_addresses_change_nothing_and_are_told(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = update(config)

    assert not done.is_done
    assert "No addresses" in caplog.text
    assert list(config.parent.iterdir()) == [config]


@pytest.mark.parametrize("text", ["scrape_configs: []\n", "- x\n", "a: '\n"])
def test_what_is_not_safe_to_change_is_left_alone_and_told(
    config: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    config.write_text(text)
    done = update(config, "h:1")

    assert not done.is_done
    assert f"{config} stays as it is" in done.nodes[0].problem
    assert done.nodes[0].problem in caplog.text
    assert config.read_text() == text
    assert not list(config.parent.glob("rollscope-targets/*.json"))


def test_files_that_cannot_be_used_are_told(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = update(config.with_name("none.yml"), "h:1")
    config.write_bytes(b"a: \xff\n")
    odd = update(config, "h:1")
    monkeypatch.setattr(configfile, "_LOCK_S", 0.0)
    lock = os.open(config.parent / "rollscope-targets" / ".lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    busy = update(config, "h:1")
    os.close(lock)

    assert missing.nodes[0].problem == f"{config.with_name('none.yml')}: No such file or directory"
    assert "no UTF-8" in odd.nodes[0].problem
    assert "unavailable" in busy.nodes[0].problem


def test_a_prometheus_that_is_away_is_told_of_and_what_was_written_stays(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = update(config, "h:1", mode="http", prometheus_url=url)

    assert not done.is_done
    assert done.nodes[0].is_job_added
    assert done.nodes[0].problem == f"{url} cannot be reached: Connection refused"
    assert "cannot be reached" in caplog.text


def test_without_ray_this_node_is_looked_after(
    config: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with answering(200, b"") as (url, _):
        done = update(config, "h:1", mode="ray", prometheus_url=url)

    assert done.is_done
    assert "this node alone" in done.note
    assert "this node alone" in caplog.text
    assert [node.is_reloaded for node in done.nodes] == [True]


@pytest.mark.parametrize(
    ("status", "body", "why", "is_refused"),
    [
        (200, b"", "", False),
        (403, b"Lifecycle API is not enabled.", "--web.enable-lifecycle", False),
        (500, b"failed to reload config: x", "answers 500: failed to reload config: x", True),
        (302, b"", "answers 302", False),
        (401, b"Unauthorized", "answers 401: Unauthorized", False),
    ],
)
def test_what_prometheus_says_to_a_reload_is_told(
    status: int, body: bytes, why: str, is_refused: bool
) -> None:
    with answering(status, body) as (url, asked):
        reload = reload_prometheus(Peer(url, headers={"Authorization": "Bearer x"}))

    assert why in reload.problem
    assert bool(reload.problem) == (status != 200)
    assert reload.is_refused == is_refused
    assert asked == [("POST", "/-/reload", "Bearer x")]


def test_an_address_that_is_none_is_told() -> None:
    assert "no http://" in reload_prometheus(Peer("file:///etc")).problem


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Answer everything in one way, and note what was asked."""
    asked: list[tuple[str, str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.command, self.path, self.headers.get("Authorization", "")))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()
