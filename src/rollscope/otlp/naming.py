"""Names that runs and processes get when they come from a resource."""

import re
from typing import Final

from rollscope._version import __version__
from rollscope.instrument.sanitise import clean_text
from rollscope.model.batch import ProcessHeader
from rollscope.otlp.aliases import read_aliases, whole_number
from rollscope.otlp.forms import Sender

__all__ = ["SILENCE_S", "process_header", "run_name", "sender_key", "sender_run"]

SILENCE_S: Final = 600.0
"""After so long without a word the open spans of a sender count as lost."""
_BEATS: Final = 3
_UNNAMED: Final = "otlp"
_MOST_CHARACTERS: Final = 128
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9._+=@-]+")
_IDENTITY: Final = ("service.name", "service.instance.id", "host.name", "process.pid")


def run_name(name: object) -> str:
    """Make a name that a run can have."""
    fitted = _FORBIDDEN.sub("_", str(name)[:512]).lstrip(".-")[:_MOST_CHARACTERS]
    return fitted or _UNNAMED


def sender_run(sender: Sender) -> str:
    """Give the run that a resource names, or one named after its service."""
    if sender.run is None:
        named = read_aliases(sender.attrs).place.get("run")
        sender.names_run = named is not None
        sender.run = run_name(named or sender.attrs.get("service.name") or _UNNAMED)
    return sender.run


def sender_key(sender: Sender) -> str:
    """Give what tells one sender from another."""
    if sender.key is None:
        parts = [str(sender.attrs.get(name, "")) for name in _IDENTITY]
        sender.key = "|".join(clean_text(part, 256) for part in parts)
    return sender.key


def process_header(sender: Sender, now_ns: int) -> ProcessHeader:
    """Describe a sender as the process that it is."""
    attrs = sender.attrs
    service = str(attrs.get("service.name") or _UNNAMED)
    host = attrs.get("host.name") or attrs.get("service.instance.id") or service
    pid = whole_number(attrs.get("process.pid"))
    rank = whole_number(read_aliases(attrs).details.get("rank"))
    return ProcessHeader(
        host=clean_text(str(host), 256),
        pid=pid if pid is not None and 0 <= pid < 2**31 else 0,
        role=clean_text(service, 256),
        rank=rank if rank is not None and 0 <= rank < 2**31 else None,
        started_ns=now_ns,
        started_mono_ns=now_ns,
        heartbeat_s=SILENCE_S / _BEATS,
        python=clean_text(str(attrs.get("process.runtime.version", "")), 64),
        version=__version__,
    )
