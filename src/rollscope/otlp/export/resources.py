"""Processes of a run as resources: who made the spans."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rollscope.otlp.export.attributes import OWN
from rollscope.otlp.export.settings import ExportSettings
from rollscope.otlp.forms import Sender

__all__ = ["Resources"]

_UNNAMED: Final = "rollscope"


class Resources:
    """Gives the resource of a process; what the environment says comes before what we know."""

    def __init__(self, run: str, settings: ExportSettings) -> None:
        self._run = run
        self._settings = settings
        self._senders: dict[int, Sender] = {}

    def learn(self, processes: Iterable[Mapping[str, Any]]) -> None:
        """Take in what the store knows of processes."""
        for row in processes:
            if row["process"] not in self._senders:
                self._senders[row["process"]] = self._make(row)

    def of(self, process: int) -> Sender:
        """Give the resource of a process, which may be one that never introduced itself."""
        if process not in self._senders:
            self._senders[process] = self._make({"process": process})
        return self._senders[process]

    def _make(self, row: Mapping[str, Any]) -> Sender:
        role, rank = row.get("role"), row.get("rank")
        key = f"{row['process']:016x}"
        known = {
            "service.name": role or _UNNAMED,
            "service.instance.id": key,
            "host.name": row.get("host"),
            "process.pid": row.get("pid") or None,
            OWN + "run": self._run,
            OWN + "role": role or None,
            OWN + "rank": rank,
        }
        attrs = {name: value for name, value in known.items() if value is not None}
        attrs |= self._settings.resource
        if self._settings.service_name:
            attrs["service.name"] = self._settings.service_name
        return Sender(attrs, key=key)
