from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rollscope.collect.discovery import DiscoveryFile, discovery_groups, encode_groups
from rollscope.collect.targets import Target, make_target, read_target_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def labels(target: Target, chosen: str | None = None) -> dict[str, str]:
    (group,) = discovery_groups([target], chosen)
    return group.labels


def test_a_target_is_written_as_prometheus_asks_for_it() -> None:
    target = make_target("https://h:8000/m?part=a", replica="r0", labels={"rack": "3"}, run="live")

    assert json.loads(encode_groups(discovery_groups([target], "other"))) == [
        {
            "targets": ["h:8000"],
            "labels": {
                "__scheme__": "https",
                "__metrics_path__": "/m",
                "__param_part": "a",
                "run": "live",
                "replica": "r0",
                "rack": "3",
                "job": "engines",
            },
        }
    ]


def test_a_target_of_no_run_belongs_to_the_one_that_is_recorded() -> None:
    assert labels(make_target("h:1"), "live")["run"] == "live"
    assert "run" not in labels(make_target("h:1"))


def test_labels_cannot_change_what_is_asked_or_break_the_file() -> None:
    given = {"__address__": "evil:1", "a-b": "1", "9": "2", "": "3", "é": "4", "job": "vllm"}

    found = labels(make_target("h:1", labels=given))

    assert "__address__" not in found
    assert {found["a_b"], found["_9"], found["job"]} == {"1", "2", "vllm"}


def test_secrets_and_what_cannot_be_said_are_not_written_down() -> None:
    targets = [make_target("h:1/m?api_key=hidden"), make_target("h:2/m?Token=hidden")]
    targets += [make_target("h:3/m?a-b=1")]  # no label can carry that

    assert discovery_groups(targets, None) == []


def test_the_file_is_exchanged_as_a_whole_and_only_if_something_changed(tmp_path: Path) -> None:
    file = DiscoveryFile(tmp_path / "sd")
    file.write(discovery_groups([make_target("h:1")], "live"))
    first = file.path.stat()
    file.write(discovery_groups([make_target("h:1")], "live"))
    same = file.path.stat()
    file.write(discovery_groups([make_target("h:2")], "live"))

    assert (first.st_ino, first.st_mtime_ns) == (same.st_ino, same.st_mtime_ns)
    assert [one.address.instance for one in read_target_file(file.path)] == ["h:2"]
    assert [path.name for path in file.path.parent.iterdir()] == ["rollscope.json"]
    file.path.unlink()
    file.write(discovery_groups([make_target("h:2")], "live"))
    assert file.path.exists()


def test_trouble_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sd").write_text("in the way")
    file = DiscoveryFile(tmp_path / "sd")
    file.write([])
    file.write([])

    assert len(caplog.records) == 1
