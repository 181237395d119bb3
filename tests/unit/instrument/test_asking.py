from __future__ import annotations

import os
from pathlib import Path

from rollscope.instrument.asking import StackRequests, ask_path


def test_each_touch_is_one_request(tmp_path: Path) -> None:
    path = Path(ask_path(str(tmp_path), b"\x01" * 8))
    requests = StackRequests(str(path))
    assert not requests.came()

    path.parent.mkdir()
    path.touch()
    assert requests.came()
    assert not requests.came()

    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert requests.came()


def test_processes_do_not_hear_requests_to_others(tmp_path: Path) -> None:
    one, other = ask_path(str(tmp_path), b"\x01" * 8), ask_path(str(tmp_path), b"\x02" * 8)
    Path(one).parent.mkdir()
    Path(one).touch()

    assert not StackRequests(other).came()


def test_without_a_run_directory_nobody_can_ask() -> None:
    assert not StackRequests(None).came()


def test_who_has_asked_is_expected_to_ask_again(tmp_path: Path) -> None:
    path = tmp_path / "process"
    requests = StackRequests(str(path))
    assert (requests.came(), requests.are_expected()) == (False, False)

    path.touch()

    assert (requests.came(), requests.are_expected()) == (True, True)
    assert (requests.came(), requests.are_expected()) == (False, True)
