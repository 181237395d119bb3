"""Every setting, once: its name, variable, type, default and meaning.

`resolve` turns keyword arguments and `ROLLSCOPE_*` variables into validated `Settings`. What the
settings do is left to the parts that read them.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from rollscope.errors import SettingError

__all__ = [
    "COMMAND_VARIABLES",
    "RAISE_VARIABLE",
    "Setting",
    "Settings",
    "all_settings",
    "resolve",
    "unknown_variables",
]

COMMAND_VARIABLES = (
    "ROLLSCOPE_STATE_DIR",
    "ROLLSCOPE_PROMETHEUS",
    "ROLLSCOPE_ALERTMANAGER",
    "ROLLSCOPE_TEMPO",
    "ROLLSCOPE_GRAFANA",
)
"""What only commands heed: where they keep their state, and where programs of others are."""
RAISE_VARIABLE = "ROLLSCOPE_RAISE"
"""Set to 1, it lets internal faults raise; no setting, since it is for our own tests."""

T = TypeVar("T")

_ON = frozenset({"1", "on", "true", "yes"})
_OFF = frozenset({"0", "off", "false", "no"})
_MAX_BYTES = 16 * 1024 * 1024
"""Of one attribute or payload: a quarter of the largest frame."""
_PORTS = range(1, 65_536)
_FIRST_PORT, _LAST_PORT = 2, 65_535
"""Port 1 is not to be had: as a variable, 1 means on."""
_FUNCTION_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_HTTP_ADDRESS = re.compile(
    r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>\d{1,5}))?"
    r"(/[^?#\s]*)?(\?token=[^&#\s]+)?"
)
_TOKEN = re.compile(r"[!-~]{1,1024}")
_RUN_NAME = re.compile(r"[A-Za-z0-9_+=@][A-Za-z0-9._+=@-]{0,127}")


class _Reject(Exception):
    """A value is not of the kind its setting takes."""


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _ON or text in _OFF:
        return text in _ON
    raise _Reject


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Reject
    return value


def _path(value: object) -> str:
    text = value.__fspath__() if hasattr(value, "__fspath__") else value
    return _text(text)


def _run_name(value: object) -> str:
    if not isinstance(value, str) or not _RUN_NAME.fullmatch(value):
        raise _Reject
    return value


def _whole(value: object) -> int:
    if isinstance(value, (bool, float)):
        raise _Reject
    try:
        number = int(str(value))
    except ValueError:
        raise _Reject from None
    if number < 0:
        raise _Reject
    return number


def _number(low: float, high: float) -> Callable[[object], float]:
    def parse(value: object) -> float:
        if isinstance(value, bool):
            raise _Reject
        try:
            number = float(str(value))
        except ValueError:
            raise _Reject from None
        if not low <= number <= high:
            raise _Reject
        return number

    return parse


def _size(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        number = _whole(value)
        if not low <= number <= high:
            raise _Reject
        return number

    return parse


def _sink(value: object) -> object:
    if isinstance(value, str):
        address = _HTTP_ADDRESS.fullmatch(value)
        is_address = address is not None and int(address["port"] or 1) in _PORTS
        if not is_address and value not in ("file", "none", "ray"):
            raise _Reject
        return value
    if all(callable(getattr(value, method, None)) for method in ("open", "write", "close")):
        return value
    raise _Reject


def _token(value: object) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise _Reject
    return value


def _viewer(value: object) -> bool | int | str:
    if value == "stay":
        return "stay"
    try:
        return _flag(value)
    except _Reject:
        number = _whole(value)
    if not _FIRST_PORT <= number <= _LAST_PORT:
        raise _Reject
    return number


def _function(value: object) -> object:
    if callable(value) or (isinstance(value, str) and _FUNCTION_PATH.fullmatch(value)):
        return value
    raise _Reject


def _tags(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    pairs = [pair.partition("=") for pair in str(value).split(",") if pair.strip()]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise _Reject
    return {key.strip(): item.strip() for key, _, item in pairs}


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
        True, _flag, "on or off", "Record at all. The variable is plain `ROLLSCOPE`."
    )
    run = Setting[str | None](
        None,
        _run_name,
        "up to 128 letters, digits and . _ + = @ -, not starting with . or -",
        "Name of the run; processes with the same name and directory share it. "
        "Default: date, time and pid.",
    )
    dir = Setting[str]("runs", _path, "a path", "Directory that holds the runs.")
    role = Setting[str]("main", _text, "any text", "What this process does: trainer, rollout, …")
    rank = Setting[int | None](
        None, _whole, "a whole number from 0", "Rank of this process within its role."
    )
    tags = Setting[dict[str, str]](
        {}, _tags, "a mapping, or text like key=value,key=value", "Labels kept in run.json."
    )
    sink = Setting[Any](
        "file",
        _sink,
        '"file", "none", "ray", http://HOST:PORT, https://HOST:PORT, or an object with open, '
        "write and close",
        "Where frames go: into the run's directory, nowhere, to the hub of a Ray cluster, or to a "
        "server.",
    )
    token = Setting[str | None](
        None,
        _token,
        "up to 1024 visible ASCII characters",
        "What the server knows its own by; may also stand in its address, as `rollscope view` "
        "prints it.",
    )
    ca_file = Setting[str | None](
        None, _path, "a path", "Certificates to trust at https:// instead of the system's."
    )
    spool_dir = Setting[str | None](
        None,
        _path,
        "a path",
        "Where frames wait that a server does not have yet. Default: `rollscope/spool` in "
        "`$XDG_STATE_HOME` or `~/.local/state`.",
    )
    spool_mb = Setting[float](
        1024.0,
        _number(1, 2**20),
        "1 to 1048576",
        "Bound on all that waits there for one server.",
    )
    viewer = Setting[bool | int | str](
        False,
        _viewer,
        'on, off, a port, or "stay"',
        "Start `rollscope view` beside the first process on a host; it ends with the run, unless "
        "told to stay.",
    )
    drain_s = Setting[float](
        0.2, _number(0.01, 60), "0.01 to 60", "Seconds between drains; a `kill -9` loses this much."
    )
    heartbeat_s = Setting[float](
        1.0, _number(0.1, 600), "0.1 to 600", "Longest silence of a living process, in seconds."
    )
    buffer_mb = Setting[float](
        64.0, _number(1, 65536), "1 to 65536", "Bound on what is kept while a sink is slow."
    )
    attr_max_bytes = Setting[int](
        4096,
        _size(64, _MAX_BYTES),
        f"a whole number from 64 to {_MAX_BYTES}",
        "Longer attribute values are cut.",
    )
    payloads = Setting[bool](
        False, _flag, "on or off", "Keep what is given to `payload` (messages, tokens)."
    )
    payload_max_bytes = Setting[int](
        262_144,
        _size(64, _MAX_BYTES),
        f"a whole number from 64 to {_MAX_BYTES}",
        "Longer payloads are cut.",
    )
    redact = Setting[Any](
        None,
        _function,
        "a function, or its import path as module:function",
        "Called with the name and value of each payload, gives what is kept instead; None keeps "
        "nothing. A payload that it fails on is dropped.",
    )
    metric_series = Setting[int](
        2_000,
        _size(1, 100_000),
        "a whole number from 1 to 100000",
        "Series of metrics that a process keeps apart; further label sets are added up under "
        "`series=other`.",
    )
    metric_s = Setting[float](
        1.0,
        _number(0, 60),
        "0 to 60",
        "Seconds between two records of one series, within a step; a `kill -9` loses this much of "
        "it.",
    )
    stack_after_s = Setting[float](
        10.0,
        _number(0, 86_400),
        "0 to 86400",
        "Record where a span hangs once it is open this long; 0 turns it off.",
    )
    sigterm = Setting[bool](
        True,
        _flag,
        "on or off",
        "Write everything on SIGTERM, where the program has no handler of its own.",
    )


def all_settings() -> dict[str, Setting[Any]]:
    """Give every setting by its name, in the order of this file."""
    return {name: item for name, item in vars(Settings).items() if isinstance(item, Setting)}


def resolve(given: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """Validate keyword arguments and `ROLLSCOPE_*` variables; an argument wins over a variable.

    `None` as an argument means "not given". `ROLLSCOPE=off` wins over `enabled=True`, so that an
    operator can silence a program without touching it.

    Raises:
        SettingError: A name is unknown or a value is not allowed.
    """
    known = all_settings()
    for name in given:
        if name not in known:
            raise SettingError(f"unknown setting {name!r}; {_hint(name, known)}")
    values: dict[str, Any] = {}
    for name, setting in known.items():
        sources = (
            (f"setting {name!r}", given.get(name)),
            (setting.variable, environ.get(setting.variable)),
        )
        for source, value in sources:
            if value is None or value == "":
                continue
            try:
                values[name] = setting.parse(value)
            except _Reject:
                shown = _without_secret(name, value)
                raise SettingError(f"{source} is {shown!r}; allowed: {setting.allowed}") from None
            break
    if environ.get("ROLLSCOPE", "").strip().lower() in _OFF:
        values["enabled"] = False
    return Settings(**values)


def _without_secret(name: str, value: object) -> object:
    """Give what may be shown of a value: messages end up in logs, and logs in many hands."""
    if name == "token":
        return "…"
    return re.sub(r"token=.*", "token=…", value) if isinstance(value, str) else value


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the `ROLLSCOPE_*` variables that mean nothing, each with a hint at what was meant."""
    known = {setting.variable: setting for setting in all_settings().values()}
    others = (*known, *COMMAND_VARIABLES, RAISE_VARIABLE)
    return {
        name: _hint(name, known)
        for name in environ
        if name.startswith("ROLLSCOPE_") and name not in others
    }


def _hint(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
