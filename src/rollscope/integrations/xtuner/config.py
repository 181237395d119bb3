"""The configuration: the fields of both designs in one class, and the variables of both.

Fields may come as a `TraceConfig`, as a mapping, or as the original's own object, which is read by
attribute. What the options do is left to `runtime`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = [
    "Options",
    "TraceConfig",
    "new_run_id",
    "options_from_environment",
    "read_options",
]

_PRODUCER: Final[dict[str, Any]] = {
    "max_events": 100_000,
    "max_events_per_trace": 256,
    "viewer_enabled": True,
    "viewer_host": "127.0.0.1",
    "viewer_port": 0,
    "viewer_refresh_interval_s": 1.0,
    "viewer_scope": "latest-produce-batch",
}
_OTEL: Final[dict[str, Any]] = {
    "service_name": "xtuner-rollout",
    "xtuner_viewer_enabled": False,
    "xtuner_viewer_host": "127.0.0.1",
    "xtuner_viewer_port": 18080,
    "xtuner_viewer_jaeger_query_url": None,
    "enable_rollout_trace": False,
}
_OWN: Final[dict[str, Any]] = {"classic": None, "strict": False, "sink": None}
_DEFAULTS: Final = {"enabled": False, "output_dir": None} | _PRODUCER | _OTEL | _OWN
_TWINS: Final = ("viewer_enabled", "viewer_host", "viewer_port")
"""What both designs have a field for; the other's has `xtuner_` before it."""
_CLASSIC: Final = ("producer", "otlp", "none")
_OTEL_FOLDER: Final = "otel_traces"


class TraceConfig:
    """The fields of both designs; unknown ones are refused."""

    def __init__(self, **fields: Any) -> None:
        self._given = _checked(fields)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (one of many fields)
        """Give a field, by default if it was not set."""
        if name not in _DEFAULTS:
            raise AttributeError(name)
        return self._given.get(name, _DEFAULTS[name])

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were set."""
        return dict(self._given)

    def __repr__(self) -> str:
        """Show the fields that were set."""
        return f"TraceConfig({', '.join(f'{name}={item!r}' for name, item in self._given.items())})"


@dataclass(frozen=True)
class Options:
    """What is to be done."""

    enabled: bool
    classic: str
    """`producer`, `otlp` or `none`: the file of old that is written beside the run."""
    output_dir: Path | None
    run_id: str
    service_name: str = "xtuner-rollout"
    jsonl_path: Path | None = None
    """Of the file of OTLP lines, where a parent process has named it."""
    viewer: bool = False
    viewer_host: str = "127.0.0.1"
    viewer_port: int = 0
    traces_rollouts: bool = False
    max_events: int = 100_000
    max_events_per_trace: int = 256
    strict: bool = False
    sink: Any = None
    is_inherited: bool = False


def new_run_id() -> str:
    """Make the name of a run, which sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{os.urandom(4).hex()}"


def read_options(config: object, output_dir: str | os.PathLike[str] | None = None) -> Options:
    """Read a configuration.

    Args:
        config: A `TraceConfig`, a mapping, an object with such attributes, or None.
        output_dir: Counts instead of the field of that name.

    Raises:
        ValueError: A field is unknown, has a wrong value, or contradicts its twin.
    """
    given = _given(config)
    if output_dir is not None:
        given["output_dir"] = output_dir
    classic = given.get("classic")
    if classic is None:
        classic = "producer" if given.keys() & _PRODUCER.keys() else "otlp"
    for name in _TWINS:
        _take_twin(given, name)
    folder = given.get("output_dir")
    if folder is None and classic == "otlp":
        folder = Path.cwd() / _OTEL_FOLDER
    return Options(
        enabled=given.get("enabled", False),
        classic=classic,
        output_dir=None if folder is None else Path(folder).expanduser().absolute(),
        run_id=new_run_id(),
        service_name=given.get("service_name", _OTEL["service_name"]),
        viewer=given.get("viewer_enabled", True),
        viewer_host=given.get("viewer_host", "127.0.0.1"),
        viewer_port=given.get("viewer_port", 0 if classic == "producer" else 18080),
        traces_rollouts=given.get("enable_rollout_trace", False),
        max_events=given.get("max_events", _PRODUCER["max_events"]),
        max_events_per_trace=given.get("max_events_per_trace", _PRODUCER["max_events_per_trace"]),
        strict=given.get("strict", False),
        sink=given.get("sink"),
    )


def options_from_environment(environ: Mapping[str, str]) -> Options | None:
    """Read what a parent process left for its children; None if it traces nothing."""
    if _is_on(environ.get("XTUNER_OTEL_ENABLED")):
        folder = environ.get("XTUNER_OTEL_OUTPUT_DIR") or _OTEL_FOLDER
        path = environ.get("XTUNER_OTEL_JSONL_PATH")
        return Options(
            enabled=True,
            classic=environ.get("XTUNER_TRACE_CLASSIC", "otlp"),
            output_dir=Path(folder).expanduser().absolute(),
            run_id=environ.get("XTUNER_OTEL_RUN_ID") or new_run_id(),
            service_name=environ.get("OTEL_SERVICE_NAME") or _OTEL["service_name"],
            jsonl_path=None if not path else Path(path),
            traces_rollouts=_is_on(environ.get("XTUNER_TRACE_ENABLE_ROLLOUT")),
            is_inherited=True,
        )
    if _is_on(environ.get("XTUNER_TRACE_ENABLED")):
        place = environ.get("XTUNER_TRACE_OUTPUT_DIR")
        return Options(
            enabled=True,
            classic=environ.get("XTUNER_TRACE_CLASSIC", "producer"),
            output_dir=None if not place else Path(place).expanduser().absolute(),
            run_id=environ.get("ROLLSCOPE_RUN") or new_run_id(),
            max_events=_number(environ, "XTUNER_TRACE_MAX_EVENTS", 100_000),
            max_events_per_trace=_number(environ, "XTUNER_TRACE_MAX_EVENTS_PER_TRACE", 256),
            is_inherited=True,
        )
    return None


def _is_on(text: str | None) -> bool:
    return text is not None and text.strip().lower() in ("1", "true", "yes", "on")


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else default


def _given(config: object) -> dict[str, Any]:
    """Find the fields that were set, as far as the object can tell."""
    if config is None:
        return {}
    if isinstance(config, TraceConfig):
        return config.given
    if isinstance(config, Mapping):
        return _checked(config)
    known = getattr(config, "model_fields_set", None)
    fields = {name: getattr(config, name) for name in _DEFAULTS if hasattr(config, name)}
    if known is None:  # it cannot tell, so what differs from the default was set
        known = {name for name, item in fields.items() if item != _DEFAULTS[name]}
    return _checked({name: item for name, item in fields.items() if name in known})


def _take_twin(given: dict[str, Any], name: str) -> None:
    twin = f"xtuner_{name}"
    if name in given and twin in given and given[name] != given[twin]:
        raise ValueError(
            f"{name}={given[name]!r} and {twin}={given[twin]!r} mean the same; give one of them"
        )
    if twin in given:
        given.setdefault(name, given[twin])


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(str(name) for name in fields if name not in _DEFAULTS)
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known are: {', '.join(_DEFAULTS)}")
    for name, item in fields.items():
        if not _fits(name, item):
            raise ValueError(f"{name} cannot be {item!r}")
    return dict(fields)


def _fits(name: str, item: object) -> bool:
    default = _DEFAULTS[name]
    if name == "classic":
        return item is None or item in _CLASSIC
    if name == "output_dir":
        return item is None or isinstance(item, (str, os.PathLike))
    if isinstance(default, bool):
        return isinstance(item, bool)
    if name.endswith("port"):
        return isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 65535
    if isinstance(default, (int, float)):
        is_number = isinstance(item, (int, float)) and not isinstance(item, bool)
        return is_number and item > 0  # type: ignore[operator]  # it is a number
    return isinstance(item, str) if isinstance(default, str) else True
