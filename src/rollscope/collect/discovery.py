"""Targets in the form that Prometheus discovers services by: for its requests, and as a file."""

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from rollscope.collect.targets import Target
from rollscope.instrument.wholefile import replace_file

__all__ = [
    "JOB",
    "DiscoveryFile",
    "DiscoveryGroup",
    "discovery_groups",
    "encode_groups",
    "label_name",
]

JOB: Final = "engines"
"""The job of targets whose labels name none."""
_FILE: Final = "rollscope.json"
_FOR_ALL: Final = 0o644
"""Prometheus is often another user, and targets with a secret are left out."""
_log = logging.getLogger("rollscope.scraping")
_UNFIT: Final = re.compile(r"[^a-zA-Z0-9_]")
_SECRET: Final = re.compile(r"token|key|secret|passw|auth|credential|sig(nature)?$", re.IGNORECASE)
_RESERVED: Final = "__"


class DiscoveryGroup(msgspec.Struct):
    """Targets that share labels."""

    targets: list[str]
    labels: dict[str, str]


def discovery_groups(targets: Iterable[Target], chosen: str | None) -> list[DiscoveryGroup]:
    """Write targets as Prometheus reads them.

    Those whose address has a secret, or a parameter that no label can carry, are left out.

    Args:
        targets: What is to be scraped.
        chosen: The run of those that name none.
    """
    ordered = sorted(targets, key=lambda one: (one.address, one.run or ""))
    groups = (_group(target, target.run or chosen) for target in ordered)
    return [group for group in groups if group is not None]


def encode_groups(groups: list[DiscoveryGroup]) -> bytes:
    """Encode them as JSON."""
    return msgspec.json.encode(groups)


def _group(target: Target, run: str | None) -> DiscoveryGroup | None:
    path, _, query = target.address.path.partition("?")
    asked = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    if any(_SECRET.search(name) or _UNFIT.search(name) for name in asked):
        return None
    given = {label_name(name): text for name, text in target.labels.items()}
    own = {
        "__scheme__": target.address.scheme,
        "__metrics_path__": path,
        **{f"__param_{name}": text for name, text in asked.items()},
        "run": run or "",
        "replica": target.replica or "",
        "job": given.get("job") or JOB,
    }
    shown = {name: text for name, text in given.items() if not name.startswith(_RESERVED)}
    labels = {name: text for name, text in {**shown, **own}.items() if text}
    return DiscoveryGroup([target.address.instance], labels)


def label_name(name: str) -> str:
    """Make a label's name of any text: one that is none makes Prometheus refuse all targets."""
    fit = _UNFIT.sub("_", name)
    return f"_{fit}" if not fit or fit[0].isdigit() else fit


class DiscoveryFile:
    """A file of targets in a directory that Prometheus watches; for one thread at a time."""

    def __init__(self, directory: Path) -> None:
        """Write nothing yet."""
        self.path = directory / _FILE
        self._written: bytes | None = None
        self._told = ""

    def write(self, groups: list[DiscoveryGroup]) -> None:
        """Have the file say this; whoever reads it sees the old or the new."""
        data = msgspec.json.format(encode_groups(groups)) + b"\n"
        if data == self._written and os.path.exists(self.path):
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, data, mode=_FOR_ALL)
        except OSError as error:
            why = error.strerror or str(error)
            if why != self._told:
                _log.warning("Prometheus is not told of targets: %s: %s", self.path, why)
            self._told = why
        else:
            self._written, self._told = data, ""
