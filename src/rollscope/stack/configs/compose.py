"""compose.yaml: the programs of others as containers, beside our server on the host.

The containers run as the user who wrote the files: the token and the password are readable for
their owner only, and the data directories are writable for the owner only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rollscope.stack.configs.layout import Layout
from rollscope.stack.configs.tempo import TempoSetup
from rollscope.stack.configs.yaml import Value, to_yaml

__all__ = ["HOST_NAME", "IMAGES", "compose_file", "compose_layout"]

HOST_NAME: Final = "host.docker.internal"
"""What containers call the machine that they run on."""
IMAGES: Final = {
    "prometheus": "prom/prometheus:v2.53.3",
    "alertmanager": "prom/alertmanager:v0.27.0",
    "tempo": "grafana/tempo:2.6.1",
    "grafana": "grafana/grafana:11.3.0",
}
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  (inside a container, whose ports are published on loopback)
_PORTS: Final = {"prometheus": (9090,), "alertmanager": (9093,), "tempo": (3200, 4418, 4417)}
_DATA: Final = {
    "prometheus": "/prometheus",
    "alertmanager": "/alertmanager",
    "tempo": "/var/tempo",
    "grafana": "/var/lib/grafana",
}
_TOKEN: Final = "/etc/rollscope/token"  # noqa: S105  (the path of a file that holds one)


@dataclass(frozen=True)
class _Service:
    name: str
    ports: Sequence[int]
    command: Sequence[str] = ()
    has_token: bool = False


def compose_layout(page: str, port: int, hours: int) -> Layout:
    """Say where everything is, seen from within the containers."""
    addresses = {name: f"{name}:{ports[0]}" for name, ports in _PORTS.items()}
    return Layout(
        page=page,
        rollscope=f"{HOST_NAME}:{port}",
        token_file=_TOKEN,
        homes={name: f"/etc/{name}" for name in IMAGES},
        data=_DATA,
        addresses={**addresses, "grafana": "grafana:3000"},
        has_target_files=False,
        tempo=TempoSetup(data=_DATA["tempo"], host=_EVERYWHERE, retention_hours=hours),
        grafana_host=_EVERYWHERE,
    )


def compose_file(user: int, group: int, retention: str) -> str:
    """Write the compose file; every port is published on this machine only."""
    services = (
        _Service(
            "prometheus",
            _PORTS["prometheus"],
            (
                "--config.file=/etc/prometheus/prometheus.yml",
                "--storage.tsdb.path=/prometheus",
                f"--storage.tsdb.retention.time={retention}",
                "--web.external-url=http://127.0.0.1:9090/",
                "--web.enable-lifecycle",
                "--enable-feature=exemplar-storage",
            ),
            has_token=True,
        ),
        _Service(
            "alertmanager",
            _PORTS["alertmanager"],
            (
                "--config.file=/etc/alertmanager/alertmanager.yml",
                "--storage.path=/alertmanager",
                "--web.external-url=http://127.0.0.1:9093/",
                "--cluster.listen-address=",
            ),
        ),
        _Service("tempo", _PORTS["tempo"], ("-config.file=/etc/tempo/tempo.yaml",)),
        _Service("grafana", (3000,)),
    )
    described: dict[str, Value] = {
        each.name: _describe(each, f"{user}:{group}") for each in services
    }
    return to_yaml({"name": "rollscope", "services": described}, "Written by rollscope.")


def _describe(service: _Service, user: str) -> dict[str, Value]:
    name = service.name
    volumes = [f"./{name}:/etc/{name}:ro", f"./data/{name}:{_DATA[name]}"]
    if service.has_token:
        volumes.append(f"./token:{_TOKEN}:ro")
    described: dict[str, Value] = {
        "image": IMAGES[name],
        "user": user,
        "restart": "unless-stopped",
        "ports": [f"127.0.0.1:{port}:{port}" for port in service.ports],
        "volumes": volumes,
    }
    if service.command:
        described["command"] = list(service.command)
    if service.has_token:
        described["extra_hosts"] = [f"{HOST_NAME}:host-gateway"]
    return described
