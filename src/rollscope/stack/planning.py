"""From what the user asks for to what will be run: programs found, ports given, files to write.

Everything that can be refused is refused here, before anything runs.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rollscope.errors import CommandError
from rollscope.stack.configs.layout import Layout, config_files
from rollscope.stack.configs.tempo import TempoSetup
from rollscope.stack.members import (
    LOOPBACK,
    Member,
    alertmanager_member,
    forwarder_member,
    grafana_member,
    prometheus_member,
    rollscope_member,
    tempo_member,
)
from rollscope.stack.options import (
    PORTS,
    StackOptions,
    check_view_words,
    page_address,
    reachable,
    retention_hours,
)
from rollscope.stack.ports import PortTable
from rollscope.stack.programs import PROGRAMS, Found, find_programs

__all__ = ["StackPlan", "plan_stack"]

_OTLP_HTTP: Final = 4418
_OTLP_GRPC: Final = 4417
_TEMPO_INTERNAL: Final = 9095


@dataclass(frozen=True, kw_only=True)
class StackPlan:
    """What will be run."""

    page: str
    runs: Path
    home: Path
    token_file: Path | None
    members: tuple[Member, ...]
    """In the order in which they are started."""
    files: Mapping[str, str]
    """Configurations, by path below the home."""
    notes: tuple[str, ...]
    """What the user should know, a sentence each."""

    def write_files(self) -> None:
        """Write the configurations; a password that was drawn earlier stays."""
        (self.home / "prometheus" / "targets").mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name != "password" or not path.exists():
                path.touch(mode=0o600)
                path.write_text(text)


def plan_stack(options: StackOptions, environ: Mapping[str, str]) -> StackPlan:
    """Work out what to run.

    Raises:
        CommandError: A program is missing or too old, a port is taken, or an option is wrong.
    """
    _check_files(options)
    check_view_words(options.view_words)
    hours = retention_hours(options.retention)
    found = find_programs(options.wanted, options.programs, environ)
    table = PortTable()
    ports = _give_ports(options, found, table)
    tempo = None
    if "tempo" in found:
        major = int(found["tempo"].version.partition(".")[0])
        tempo = replace(_tempo_setup(options, ports["tempo"], table, hours), major=major)
    layout = _lay_out(options, found, ports, tempo)
    return StackPlan(
        page=layout.page,
        runs=options.runs,
        home=options.where.path,
        token_file=options.where.token_file if options.has_token else None,
        members=_members(options, found, ports, layout),
        files=config_files(layout, secrets.token_urlsafe(18)),
        notes=tuple(table.notes),
    )


def _check_files(options: StackOptions) -> None:
    config, dashboards = options.alertmanager_config, options.dashboards
    if config is not None and not config.is_file():
        raise CommandError(f"--alertmanager-config: there is no file {config}", 2)
    if dashboards is not None and not dashboards.is_dir():
        raise CommandError(f"--dashboards: there is no directory {dashboards}", 2)


def _give_ports(
    options: StackOptions, found: Mapping[str, Found], table: PortTable
) -> dict[str, int]:
    ports = {
        "rollscope": table.take(
            "Rollscope", options.ports.get("rollscope"), PORTS["rollscope"], options.host, "--port"
        )
    }
    for name in found:
        title, option = PROGRAMS[name].title, f"--{name}-port"
        ports[name] = table.take(title, options.ports.get(name), PORTS[name], LOOPBACK, option)
    return ports


def _tempo_setup(options: StackOptions, port: int, table: PortTable, hours: int) -> TempoSetup:
    def near(what: str, usual: int) -> int:
        return table.take(f"Tempo's {what}", None, usual, LOOPBACK, "--tempo-port")

    return TempoSetup(
        data=str(options.where.path / "tempo" / "data"),
        port=port,
        otlp_http_port=near("OTLP", _OTLP_HTTP),
        otlp_grpc_port=near("OTLP over gRPC", _OTLP_GRPC),
        internal_port=near("inner port", _TEMPO_INTERNAL),
        retention_hours=hours,
    )


def _lay_out(
    options: StackOptions,
    found: Mapping[str, Found],
    ports: Mapping[str, int],
    tempo: TempoSetup | None,
) -> Layout:
    home = options.where.path
    more = () if options.dashboards is None else (str(options.dashboards.absolute()),)
    return Layout(
        page=page_address(options.host, ports["rollscope"]),
        rollscope=reachable(options.host, ports["rollscope"]),
        token_file=str(options.where.token_file) if options.has_token else None,
        homes={name: str(home / name) for name in found},
        data={name: str(home / name / "data") for name in found},
        addresses={name: f"{LOOPBACK}:{ports[name]}" for name in found},
        tempo=tempo,
        grafana_port=ports.get("grafana", PORTS["grafana"]),
        more_dashboards=more,
    )


def _members(
    options: StackOptions, found: Mapping[str, Found], ports: Mapping[str, int], layout: Layout
) -> tuple[Member, ...]:
    """Describe the members in the order in which they are started."""
    home = options.where.path
    members = [_own_member(options, ports, layout)]
    if "tempo" in found and layout.tempo is not None:
        members.append(tempo_member(found["tempo"], home / "tempo", ports["tempo"]))
        endpoint = f"http://{LOOPBACK}:{layout.tempo.otlp_http_port}"
        members.append(forwarder_member(options.runs, endpoint, home / "forwarder"))
    if "prometheus" in found:
        members.append(
            prometheus_member(
                found["prometheus"], home / "prometheus", ports["prometheus"], options.retention
            )
        )
    if "alertmanager" in found:
        place = home / "alertmanager"
        config = options.alertmanager_config or place / "alertmanager.yml"
        port = ports["alertmanager"]
        members.append(alertmanager_member(found["alertmanager"], place, config.absolute(), port))
    if "grafana" in found:
        members.append(grafana_member(found["grafana"], home / "grafana", ports["grafana"]))
    return tuple(members)


def _own_member(options: StackOptions, ports: Mapping[str, int], layout: Layout) -> Member:
    told = ["--host", options.host, "--port", str(ports["rollscope"])]
    told += ["--sd-dir", str(options.where.path / "prometheus" / "targets")]
    for name in ("grafana", "tempo"):
        if name in layout.addresses:
            told += [f"--{name}-url", f"http://{layout.addresses[name]}"]
    told += options.view_words
    token = options.where.token_file if options.has_token else None
    return rollscope_member(options.runs, layout.page, layout.rollscope, token, tuple(told))
