from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollscope.collect.targets import MOST_TARGETS, make_target
from rollscope.collect.targetstore import TargetStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TargetStore]:
    store = TargetStore(tmp_path)
    yield store
    store.close()


def claimed(directory: Path, only_run: str | None = None) -> list[str]:
    """Give what a server that is started now would ask."""
    store = TargetStore(directory, only_run)
    found = store.claim()
    store.close()
    return [one.address.url for one in found]


def test_what_was_kept_is_found_by_the_next_server(tmp_path: Path, store: TargetStore) -> None:
    target = make_target("h:8000", replica="r0", labels={"rack": "3"}, run="live")
    assert store.claim(make=True) == []
    store.save([target])
    store.close()

    assert store.path.stat().st_mode & 0o777 == 0o600
    again = TargetStore(tmp_path)
    assert again.claim() == [target]
    again.save([])
    again.close()
    assert not again.path.exists()


def test_nothing_is_written_where_nothing_is_registered(tmp_path: Path, store: TargetStore) -> None:
    assert store.claim() == []
    store.save([])

    assert list(tmp_path.iterdir()) == []


def test_a_second_server_leaves_the_file_alone_until_the_first_has_gone(
    tmp_path: Path, store: TargetStore
) -> None:
    store.claim(make=True)
    store.save([make_target("h:1")])
    second = TargetStore(tmp_path)

    assert second.claim(make=True) == []
    assert "another server" in second.problem
    second.save([make_target("h:2")])
    store.close()
    assert [one.address.url for one in second.claim()] == ["http://h:1/metrics"]
    assert second.problem == ""
    second.close()


def test_a_server_of_one_run_has_a_file_of_its_own(tmp_path: Path, store: TargetStore) -> None:
    store.claim(make=True)
    store.save([make_target("h:1")])

    assert claimed(tmp_path, "live") == []


@pytest.mark.parametrize(
    ("data", "urls"),
    [
        (b"", []),
        (b"{", []),
        (b"\xff\xfe", []),
        (b'{"targets": 5}', []),
        (
            b'{"targets": [{"url": "h:1"}, {"url": "file:///etc/passwd"}, 7]}',
            ["http://h:1/metrics"],
        ),
        (b" " * (4 * 1024 * 1024 + 1), []),
    ],
)
def test_damage_costs_only_what_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes, urls: list[str]
) -> None:
    TargetStore(tmp_path).path.write_bytes(data)

    assert claimed(tmp_path) == urls
    assert "damaged" in caplog.text
    aside = tmp_path / ".rollscope-targets.damaged"
    assert aside.read_bytes()[:100] == data[:100]
    assert aside.stat().st_mode & 0o777 == 0o600  # an address may hold a token


def test_no_more_are_taken_than_may_be_asked(tmp_path: Path) -> None:
    many = [{"url": f"h:{port}"} for port in range(1, MOST_TARGETS + 10)]
    TargetStore(tmp_path).path.write_text(json.dumps({"targets": many}))

    assert len(claimed(tmp_path)) == MOST_TARGETS


def test_a_directory_that_cannot_be_written_is_told_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = TargetStore(tmp_path / "file")

    assert store.claim(make=True) == []
    assert "cannot be locked" in store.problem
    store.save([make_target("h:1")])
