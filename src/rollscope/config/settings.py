"""Every setting, once: its name, variable, type, default and meaning.

What values it takes is left to `values`, and where they come from to `resolving`.
"""

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from rollscope.config.values import (
    number_between,
    read_flag,
    read_function,
    read_path,
    read_run_name,
    read_sink,
    read_tags,
    read_text,
    read_token,
    read_viewer,
    read_whole,
    whole_between,
)

__all__ = ["Setting", "Settings", "all_settings"]

T = TypeVar("T")

_MAX_BYTES = 16 * 1024 * 1024
"""Of one attribute or payload: a quarter of the largest frame."""


class Setting(Generic[T]):
    """One setting. Read from an instance of `Settings`, it gives the value."""

    def __init__(self, default: T, parse: Callable[[object], T], allowed: str, doc: str) -> None:
        self.default = default
        self.parse = parse
        self.allowed = allowed
        self.doc = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.variable = "ROLLSCOPE" if name == "enabled" else f"ROLLSCOPE_{name.upper()}"

    @overload
    def __get__(self, settings: None, owner: type) -> "Setting[T]": ...
    @overload
    def __get__(self, settings: "Settings", owner: type) -> T: ...
    def __get__(self, settings: "Settings | None", owner: type) -> "Setting[T] | T":
        if settings is None:
            return self
        value: T = settings.values.get(self.name, self.default)
        return value


class Settings:
    """The resolved settings of one tracer."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def of_network_sink(self) -> dict[str, Any]:
        """Give what was set of how a sink reaches a server, so that it holds anywhere."""
        names = ("token", "ca_file", "spool_dir", "spool_mb")
        given: dict[str, Any] = {name: self.values[name] for name in names if name in self.values}
        for name in ("ca_file", "spool_dir"):
            if name in given:
                given[name] = os.path.abspath(given[name])
        return given

    enabled = Setting[bool](
        True, read_flag, "on or off", "Record at all. The variable is plain `ROLLSCOPE`."
    )
    run = Setting[str | None](
        None,
        read_run_name,
        "up to 128 letters, digits and . _ + = @ -, not starting with . or -",
        "Name of the run; processes with the same name and directory share it. "
        "Default: date, time and pid.",
    )
    dir = Setting[str]("runs", read_path, "a path", "Directory that holds the runs.")
    role = Setting[str](
        "main", read_text, "any text", "What this process does: trainer, rollout, …"
    )
    rank = Setting[int | None](
        None, read_whole, "a whole number from 0", "Rank of this process within its role."
    )
    tags = Setting[dict[str, str]](
        {}, read_tags, "a mapping, or text like key=value,key=value", "Labels kept in run.json."
    )
    sink = Setting[Any](
        "file",
        read_sink,
        '"file", "none", "ray", http://HOST:PORT, https://HOST:PORT, or an object with open, '
        "write and close",
        "Where frames go: into the run's directory, nowhere, to the hub of a Ray cluster, or to a "
        "server.",
    )
    token = Setting[str | None](
        None,
        read_token,
        "up to 1024 visible ASCII characters",
        "What the server knows its own by; may also stand in its address, as `rollscope view` "
        "prints it.",
    )
    ca_file = Setting[str | None](
        None, read_path, "a path", "Certificates to trust at https:// instead of the system's."
    )
    spool_dir = Setting[str | None](
        None,
        read_path,
        "a path",
        "Where frames wait that a server does not have yet. Default: `rollscope/spool` in "
        "`$XDG_STATE_HOME` or `~/.local/state`.",
    )
    spool_mb = Setting[float](
        1024.0,
        number_between(1, 2**20),
        "1 to 1048576",
        "Bound on all that waits there for one server.",
    )
    viewer = Setting[bool | int | str](
        False,
        read_viewer,
        'on, off, a port, or "stay"',
        "Start `rollscope view` beside the first process on a host; it ends with the run, unless "
        "told to stay.",
    )
    drain_s = Setting[float](
        0.2,
        number_between(0.01, 60),
        "0.01 to 60",
        "Seconds between drains; a `kill -9` loses this much.",
    )
    heartbeat_s = Setting[float](
        1.0,
        number_between(0.1, 600),
        "0.1 to 600",
        "Longest silence of a living process, in seconds.",
    )
    buffer_mb = Setting[float](
        64.0, number_between(1, 65536), "1 to 65536", "Bound on what is kept while a sink is slow."
    )
    attr_max_bytes = Setting[int](
        4096,
        whole_between(64, _MAX_BYTES),
        f"a whole number from 64 to {_MAX_BYTES}",
        "Longer attribute values are cut.",
    )
    payloads = Setting[bool](
        False, read_flag, "on or off", "Keep what is given to `payload` (messages, tokens)."
    )
    payload_max_bytes = Setting[int](
        262_144,
        whole_between(64, _MAX_BYTES),
        f"a whole number from 64 to {_MAX_BYTES}",
        "Longer payloads are cut.",
    )
    redact = Setting[Any](
        None,
        read_function,
        "a function, or its import path as module:function",
        "Called with the name and value of each payload, gives what is kept instead; None keeps "
        "nothing. A payload that it fails on, or hangs in, is dropped.",
    )
    metric_series = Setting[int](
        2_000,
        whole_between(1, 100_000),
        "a whole number from 1 to 100000",
        "Series of metrics that a process keeps apart; further label sets are added up under "
        "`series=other`.",
    )
    metric_s = Setting[float](
        1.0,
        number_between(0, 60),
        "0 to 60",
        "Seconds between two records of one series, within a step; a `kill -9` loses this much of "
        "it.",
    )
    stack_after_s = Setting[float](
        10.0,
        number_between(0, 86_400),
        "0 to 86400",
        "Record where a span hangs once it is open this long; 0 turns it off.",
    )
    sigterm = Setting[bool](
        True,
        read_flag,
        "on or off",
        "Write everything on SIGTERM, where the program has no handler of its own.",
    )


def all_settings() -> dict[str, Setting[Any]]:
    """Give every setting by its name, in the order of this file."""
    return {name: item for name, item in vars(Settings).items() if isinstance(item, Setting)}
