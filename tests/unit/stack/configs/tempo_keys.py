"""The keys of a Tempo configuration that its documentation names, as far as ours could need them.

Written down from the configuration references of Tempo 2.x and 3.0. Tempo refuses to start with a
key that it does not know, and there is no Tempo here to ask.
"""

from __future__ import annotations

from typing import Any

__all__ = ["TEMPO_KEYS", "unknown_keys"]

Keys = dict[str, Any]
"""A key that holds others, or the type of its value."""

_COMMON: Keys = {
    "stream_over_http_enabled": bool,
    "multitenancy_enabled": bool,
    "server": {
        "http_listen_address": str,
        "http_listen_port": int,
        "grpc_listen_address": str,
        "grpc_listen_port": int,
        "log_level": str,
        "log_format": str,
        "graceful_shutdown_timeout": str,
    },
    "distributor": {
        "receivers": {
            "otlp": {"protocols": {"http": {"endpoint": str}, "grpc": {"endpoint": str}}},
        },
    },
    "storage": {
        "trace": {"backend": str, "local": {"path": str}, "wal": {"path": str}},
    },
    "usage_report": {"reporting_enabled": bool},
}
_COMPACTION: Keys = {"block_retention": str, "compacted_block_retention": str}

TEMPO_KEYS: dict[int, Keys] = {
    2: {**_COMMON, "compactor": {"compaction": _COMPACTION}},
    3: {
        **_COMMON,
        "live_store": {"wal": {"path": str}, "shutdown_marker_dir": str},
        "backend_scheduler": {
            "local_work_path": str,
            "provider": {"compaction": {"compaction": _COMPACTION}},
        },
    },
}
"""By version: 3 has done away with the ingester and the compactor."""


def unknown_keys(config: Any, known: Keys, path: str = "") -> list[str]:
    """Give the keys that are not known, or hold a value of another type, by their path."""
    found = []
    for key, value in config.items():
        expected = known.get(key)
        if isinstance(expected, dict) and isinstance(value, dict):
            found += unknown_keys(value, expected, f"{path}{key}.")
        elif not isinstance(expected, type) or type(value) is not expected:
            found.append(f"{path}{key}")
    return found
