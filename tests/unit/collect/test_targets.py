from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollscope.collect.addresses import parse_address
from rollscope.collect.targets import make_target, parse_named_target, read_target_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://host:8000/metrics", "http://host:8000/metrics"),
        ("host:8000", "http://host:8000/metrics"),
        ("https://host", "https://host:443/metrics"),
        ("http://[::1]:9/", "http://[::1]:9/metrics"),
        ("http://host:1/a/b?c=d", "http://host:1/a/b?c=d"),
    ],
)
def test_addresses_are_made_whole(text: str, url: str) -> None:
    assert parse_address(text).url == url


@pytest.mark.parametrize(
    "text",
    ["", "file:///etc/passwd", "http://", "http://user:pw@host/", "http://a b/", "http://h:99999/",
     "http://h\r\nX: y/", "http://ä/", "http://h/" + "x" * 3_000],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_address(text)


def test_a_name_stands_before_the_address() -> None:
    named, bare = parse_named_target("r0=host:8000"), parse_named_target("http://h:1/m?a=b")

    assert (named.replica, named.address.instance) == ("r0", "host:8000")
    assert (bare.replica, bare.address.path) == (None, "/m?a=b")


def test_a_target_without_a_name_is_called_what_it_says_or_where_it_is() -> None:
    target = make_target("host:8000", labels={"rack": "3", "instance": "forged"})

    assert target.labels_for({}) == {
        "rack": "3",
        "replica": "host:8000",
        "instance": "host:8000",
    }
    assert target.labels_for({"ReplicaId": "abc"})["replica"] == "abc"
    assert make_target("host:8000", replica="r0").labels_for({"replica": "x"})["replica"] == "r0"


def test_a_file_of_targets_is_read_as_prometheus_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    groups = [
        {"labels": {"job": "ray"}, "targets": ["10.0.0.1:8080", "10.0.0.2:8080"]},
        {
            "labels": {
                "replica": "r1",
                "run": "a",
                "__scheme__": "https",
                "__metrics_path__": "/m",
            },
            "targets": ["b:1"],
        },
    ]
    path.write_text(json.dumps(groups))

    first, _, third = read_target_file(path)

    assert (first.address.url, first.labels) == ("http://10.0.0.1:8080/metrics", {"job": "ray"})
    assert (third.address.url, third.replica, third.run) == ("https://b:1/m", "r1", "a")
    assert third.labels == {}


@pytest.mark.parametrize("text", ["", "{}", '[{"targets": "a"}]', '[{"targets": ["ftp://a"]}]'])
def test_what_is_no_file_of_targets_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "targets.json"
    path.write_text(text)

    with pytest.raises(ValueError, match=r"\w"):
        read_target_file(path)
