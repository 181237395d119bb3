"""The configuration of the stand-in: defaults, then what `init` was given, then the environment.

Both forms of RL-Insight are read: that of 0.3 (`server.namespace`, `server.backend`, `server.url`)
and the earlier one (`namespace`, `backend.type`, `otel.traces_endpoint`). A configuration is a
mapping, an OmegaConf object or any object with attributes.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["SERVER_URL", "MonitorConfig", "is_config", "load_config"]

SERVER_URL: Final = "RL_INSIGHT_SERVER_URL"
_TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_BACKENDS: Final = ("ray", "local")
_MOST_PORT: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class MonitorConfig:
    """What holds for this process."""

    namespace: str = "rl_insight_monitor"
    """What names of metrics begin with at the endpoint."""
    backend: str = "ray"
    """`ray` uses a running Ray, and does without one; `local` never does."""
    url: str = ""
    """Of a Rollscope server; empty: what is recorded stays on this machine, or with Ray's hub."""
    report_port: int | None = 9092
    """Where metrics are shown; 0 takes a free port, None shows none."""
    report_host: str = "127.0.0.1"
    prometheus_port: int = 9090
    config_file: str | None = None
    """Of a Prometheus whose configuration is to be changed."""
    reload_mode: str = "ray"
    traces_endpoint: str = ""
    """Empty unless somebody named one."""
    buckets: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Upper bounds of histograms, by name."""
    legacy_gauges: bool = False
    """Show the `agent_loop_*_info` gauges too, one series for each trajectory."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else `rollscope.init` is given."""


def is_config(value: object) -> bool:
    """Say whether an argument is a configuration, rather than a name or addresses."""
    if value is None or isinstance(value, (str, bytes)):
        return False
    return isinstance(value, Mapping) or not isinstance(value, Sequence)


def load_config(given: object, environ: Mapping[str, str] | None = None) -> MonitorConfig:
    """Merge what is given over the defaults, and the environment over that.

    Raises:
        ValueError: The backend is unknown, or a value cannot be used.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, Any] = {
        "namespace": _first(given, "server.namespace", "namespace"),
        "backend": _first(given, "server.backend", "backend.type"),
        "url": environ.get(SERVER_URL) or _first(given, "server.url"),
        "report_host": _first(given, "prometheus.metrics_report_host"),
        "prometheus_port": _first(given, "prometheus.prometheus_port"),
        "config_file": _first(given, "prometheus.config_file"),
        "reload_mode": _first(given, "prometheus.reload.mode"),
        "traces_endpoint": environ.get(_TRACES) or _first(given, "otel.traces_endpoint"),
        "legacy_gauges": _first(given, "legacy_gauges", "server.legacy_gauges"),
        "buckets": _read_buckets(_first(given, "buckets", "prometheus.buckets")),
        "settings": _as_dict(_first(given, "rollscope")),
    }
    chosen = {name: value for name, value in found.items() if value is not None}
    if "backend" not in chosen and isinstance(_first(given, "backend"), str):
        chosen["backend"] = _first(given, "backend")
    for name in ("namespace", "backend", "url", "report_host", "reload_mode"):
        if name in chosen:
            chosen[name] = str(chosen[name]).strip()
    if _has(given, "prometheus.metrics_report_port"):
        chosen["report_port"] = _read_port(_first(given, "prometheus.metrics_report_port"))
    if "prometheus_port" in chosen:
        chosen["prometheus_port"] = _read_port(chosen["prometheus_port"]) or 9090
    chosen["backend"] = chosen.get("backend", "ray").lower() or "ray"
    if chosen["backend"] not in _BACKENDS:
        known = ", ".join(_BACKENDS)
        raise ValueError(f"unknown backend {chosen['backend']!r}; known are: {known}")
    chosen["url"] = _with_scheme(chosen.get("url", ""))
    return MonitorConfig(**chosen)


_ABSENT: Final = object()


def _look(config: object, path: str) -> object:
    """Follow a path of names through mappings and objects."""
    at = config
    for name in path.split("."):
        if isinstance(at, Mapping):
            at = at.get(name, _ABSENT)
        elif at is None or isinstance(at, (str, int, float)):
            return _ABSENT
        else:
            at = getattr(at, name, _ABSENT)
        if at is _ABSENT:
            return _ABSENT
    return at


def _has(config: object, path: str) -> bool:
    return _look(config, path) is not _ABSENT


def _first(config: object, *paths: str) -> Any:  # noqa: ANN401  (whatever was configured)
    """Give the first value that is there and is not None."""
    values = (_look(config, path) for path in paths)
    return next((value for value in values if value is not _ABSENT and value is not None), None)


def _as_dict(given: object) -> dict[str, Any] | None:
    if given is None:
        return None
    items = given.items() if isinstance(given, Mapping) else vars(given).items()
    return {str(name): value for name, value in items}


def _read_buckets(given: object) -> dict[str, tuple[float, ...]] | None:
    found = _as_dict(given)
    if found is None:
        return None
    return {name: tuple(sorted({float(bound) for bound in found[name]})) for name in found}


def _read_port(given: object) -> int | None:
    if given is None or given is False or given == "":
        return None
    try:
        port = int(str(given))
    except ValueError:
        port = -1
    if not 0 <= port <= _MOST_PORT:
        raise ValueError(f"{given!r} is no port from 0 to {_MOST_PORT}")
    return port


def _with_scheme(url: str) -> str:
    return url if not url or "://" in url else f"http://{url}"
