"""Targets: who is asked for metrics, as options, files and requests name them."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from rollscope.collect.addresses import TargetAddress, parse_address
from rollscope.model.undecodable import UNDECODABLE

__all__ = [
    "MOST_TARGETS",
    "ListedTargets",
    "Target",
    "make_target",
    "parse_named_target",
    "read_target_file",
]

_log = logging.getLogger("rollscope.scraping")
MOST_TARGETS: Final = 1_000
_FILE_BYTES: Final = 4 * 1024 * 1024
_MOST_LABELS: Final = 16
_CHARACTERS: Final = 200
_OWN: Final = ("replica", "instance", "run")
_HIDDEN: Final = "__"
_REPLICA_LABELS: Final = ("replica", "ReplicaId")
"""What Ray, which answers for all replicas of a node, tells them apart by."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Something that exposes metrics."""

    address: TargetAddress
    replica: str | None = None
    """What sessions call it; without, what it says itself, or its host and port."""
    labels: dict[str, str] = {}
    """Added to all that it exposes."""
    run: str | None = None
    """Whose engine it is; without, of the run that is being recorded."""

    def labels_for(self, exposed: Mapping[str, str]) -> dict[str, str]:
        """Give the labels to add to those of a line."""
        said = (exposed[name] for name in _REPLICA_LABELS if exposed.get(name))
        replica = self.replica or next(said, self.address.instance)
        replica = replica[:_CHARACTERS]
        return {**self.labels, "replica": replica, "instance": self.address.instance}


def make_target(
    url: str,
    *,
    replica: str | None = None,
    labels: Mapping[str, str] | None = None,
    run: str | None = None,
) -> Target:
    """Make a target.

    Raises:
        ValueError: The address is none, or there are too many labels, or too long ones.
    """
    kept = {name: value for name, value in (labels or {}).items() if name not in _OWN}
    texts = [replica or "", *kept, *kept.values()]
    if len(kept) > _MOST_LABELS or any(len(text) > _CHARACTERS for text in texts):
        raise ValueError(f"a target has at most {_MOST_LABELS} labels of {_CHARACTERS} characters")
    return Target(address=parse_address(url), replica=replica or None, labels=kept, run=run)


def parse_named_target(text: str) -> Target:
    """Read `NAME=URL`, or an address alone.

    Raises:
        ValueError: It is neither.
    """
    name, equals, url = text.partition("=")
    if not equals or "/" in name or ":" in name:  # that was within the address
        return make_target(text)
    return make_target(url, replica=name)


class _Group(msgspec.Struct):
    targets: list[str]
    labels: dict[str, str] = {}


def read_target_file(path: Path) -> list[Target]:
    """Read a file in the form that Prometheus discovers services by.

    Raises:
        ValueError: It is none, or something in it is no target.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_FILE_BYTES + 1)
    if len(data) > _FILE_BYTES:
        raise ValueError("it is larger than 4 MiB")
    try:
        groups = msgspec.json.decode(data, type=list[_Group])
    except UNDECODABLE as error:
        raise ValueError(f"it is no list of targets: {error}") from None
    targets = list(_targets_of(groups))
    if len(targets) > MOST_TARGETS:
        raise ValueError(f"it has {len(targets)} targets; the most is {MOST_TARGETS}")
    return targets


def _targets_of(groups: Iterable[_Group]) -> Iterable[Target]:
    for group in groups:
        labels = group.labels
        shown = {name: text for name, text in labels.items() if not name.startswith(_HIDDEN)}
        scheme = labels.get("__scheme__", "http")
        path = labels.get("__metrics_path__", "/metrics")
        for address in group.targets:
            url = address if "://" in address else f"{scheme}://{address}{path}"
            yield make_target(
                url, replica=labels.get("replica"), labels=shown, run=labels.get("run")
            )


class ListedTargets:
    """A file of targets that may change; for one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Read nothing yet."""
        self._path = path
        self._state: tuple[int, int] | None = None
        self._is_missing = False

    def read(self) -> list[Target] | None:
        """Give what it lists, if that has changed; what cannot be used is told once."""
        state = None
        try:
            status = self._path.stat()
            self._is_missing = False
            state = (status.st_mtime_ns, status.st_size)
            if state == self._state:
                return None
            self._state = state
            return read_target_file(self._path)
        except (OSError, ValueError) as error:
            if state is not None or not self._is_missing:
                why = error.strerror if isinstance(error, OSError) else str(error)
                _log.warning("Targets stay as they are: %s cannot be used: %s", self._path, why)
            self._is_missing = state is None
            return None
