"""All files of a stack, from where each program and its neighbours are.

The same layout serves programs that run here, containers, and files that are only written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from rollscope.stack.configs.alertmanager import alertmanager_config
from rollscope.stack.configs.grafana import GrafanaSetup, grafana_ini, provisioning
from rollscope.stack.configs.prometheus import PrometheusSetup, prometheus_config
from rollscope.stack.configs.tempo import TempoSetup, tempo_config

__all__ = ["Layout", "config_files", "prometheus_setup", "shipped"]

_STATIC: Final = files("rollscope.stack").joinpath("static")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything is, as the programs see it."""

    page: str
    """Address of the page, as a browser needs it; it ends with a slash."""
    rollscope: str
    """Where the programs reach our server, as HOST:PORT."""
    token_file: str | None
    homes: Mapping[str, str]
    """Directory of the configuration of each program that there is."""
    data: Mapping[str, str]
    """Directory that each of them may write to."""
    addresses: Mapping[str, str]
    """Where they reach each other, as HOST:PORT."""
    has_target_files: bool = True
    """Whether our server writes the targets of engines where Prometheus can read them."""
    tempo: TempoSetup | None = None
    grafana_host: str = "127.0.0.1"
    grafana_port: int = 3000
    more_dashboards: tuple[str, ...] = ()
    is_default_source: bool = True
    """Whether Grafana has no other source that new panels ask."""


def config_files(layout: Layout, password: str) -> dict[str, str]:
    """Write the configuration of each program that there is, by path below a common directory."""
    written: dict[str, str] = {}
    if "prometheus" in layout.homes:
        written["prometheus/prometheus.yml"] = prometheus_config(prometheus_setup(layout))
        rules = shipped("rules", ".yml")
        written |= {f"prometheus/rules/{name}": text for name, text in rules.items()}
    if "alertmanager" in layout.homes:
        written["alertmanager/alertmanager.yml"] = alertmanager_config()
    if layout.tempo is not None:
        written["tempo/tempo.yaml"] = tempo_config(layout.tempo)
    if "grafana" in layout.homes:
        written |= {f"grafana/{name}": text for name, text in _grafana(layout, password).items()}
    return written


def prometheus_setup(layout: Layout) -> PrometheusSetup:
    """Give what Prometheus has to know of a layout."""
    home = layout.homes["prometheus"]
    return PrometheusSetup(
        page=layout.page,
        rollscope=layout.rollscope,
        token_file=layout.token_file,
        rules=f"{home}/rules/*.yml",
        engine_files=f"{home}/targets/*.json" if layout.has_target_files else None,
        prometheus=layout.addresses.get("prometheus"),
        alertmanager=layout.addresses.get("alertmanager"),
        tempo=layout.addresses.get("tempo"),
        grafana=layout.addresses.get("grafana"),
    )


def _grafana(layout: Layout, password: str) -> dict[str, str]:
    home = layout.homes["grafana"]
    dashboards = shipped("dashboards", ".json")
    first = next((name for name in dashboards if "overview" in name), None)
    setup = GrafanaSetup(
        page=layout.page,
        home=home,
        data=layout.data["grafana"],
        dashboards=(f"{home}/dashboards", *layout.more_dashboards),
        prometheus=layout.addresses.get("prometheus"),
        tempo=layout.addresses.get("tempo"),
        is_default=layout.is_default_source,
        home_dashboard=None if first is None else f"{home}/dashboards/{first}",
        host=layout.grafana_host,
        port=layout.grafana_port,
    )
    return {
        "grafana.ini": grafana_ini(setup),
        "password": password,
        **{f"provisioning/{name}": text for name, text in provisioning(setup).items()},
        **{f"dashboards/{name}": text for name, text in dashboards.items()},
    }


def shipped(folder: str, suffix: str) -> dict[str, str]:
    """Give the texts of a folder that come with the package, by name; none if there are none."""
    place = _STATIC.joinpath(folder)
    if not place.is_dir():
        return {}
    found = [each for each in place.iterdir() if each.name.endswith(suffix)]
    return {each.name: each.read_text() for each in sorted(found, key=lambda each: each.name)}
