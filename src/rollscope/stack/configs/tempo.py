"""tempo.yaml: one process, traces on the local disk, OTLP taken on this machine only.

Tempo refuses to start with a key that it does not know, and version 3 has other parts than 2.
"""

from dataclasses import dataclass

from rollscope.stack.configs.yaml import Value, to_yaml

__all__ = ["TempoSetup", "tempo_config"]


@dataclass(frozen=True, kw_only=True)
class TempoSetup:
    """What a configuration of Tempo depends on."""

    data: str
    """Directory of the traces."""
    major: int = 2
    """The version that the configuration is for."""
    host: str = "127.0.0.1"
    """Address that everything listens on."""
    port: int = 3200
    otlp_http_port: int = 4418
    otlp_grpc_port: int = 4417
    internal_port: int = 9095
    """For the parts of Tempo among themselves."""
    retention_hours: int = 360


def tempo_config(setup: TempoSetup) -> str:
    """Write the configuration."""
    return to_yaml(
        {
            "server": {
                "http_listen_address": setup.host,
                "http_listen_port": setup.port,
                "grpc_listen_address": setup.host,
                "grpc_listen_port": setup.internal_port,
                "log_level": "info",
            },
            "distributor": {
                "receivers": {
                    "otlp": {
                        "protocols": {
                            "http": {"endpoint": f"{setup.host}:{setup.otlp_http_port}"},
                            "grpc": {"endpoint": f"{setup.host}:{setup.otlp_grpc_port}"},
                        }
                    }
                }
            },
            **_keeping(setup),
            "storage": {
                "trace": {
                    "backend": "local",
                    "local": {"path": f"{setup.data}/blocks"},
                    "wal": {"path": f"{setup.data}/wal"},
                }
            },
            "usage_report": {"reporting_enabled": False},
        },
        "Written by rollscope; what is changed here is lost at the next start.",
    )


def _keeping(setup: TempoSetup) -> dict[str, Value]:
    """Say how long traces are kept, and where what is not in a block yet is written."""
    compaction: dict[str, Value] = {"block_retention": f"{setup.retention_hours}h"}
    if setup.major < 3:
        return {"compactor": {"compaction": compaction}}
    return {
        "live_store": {
            "wal": {"path": f"{setup.data}/live-store/wal"},
            "shutdown_marker_dir": f"{setup.data}/live-store/shutdown-marker",
        },
        "backend_scheduler": {
            "local_work_path": f"{setup.data}/backend-scheduler",
            "provider": {"compaction": {"compaction": compaction}},
        },
    }
