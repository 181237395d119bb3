"""Grafana: its ini file, and what it is provisioned with: data sources and dashboards.

A dollar sign means a variable to Grafana wherever it reads such a file, so those that are meant
for links are doubled, and texts of others that hold one are refused.
"""

from collections.abc import Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from io import StringIO
from typing import Final

from rollscope.errors import CommandError
from rollscope.stack.configs.yaml import Value, to_yaml

__all__ = ["PROMETHEUS_UID", "TEMPO_UID", "GrafanaSetup", "grafana_ini", "provisioning"]

PROMETHEUS_UID: Final = "rollscope-prometheus"
TEMPO_UID: Final = "rollscope-tempo"
_COMMENT: Final = "Written by rollscope; what is changed here is lost at the next start."
_SESSION: Final = "#/$${__data.fields.run}/session/$${__data.fields.trace_id}"


@dataclass(frozen=True, kw_only=True)
class GrafanaSetup:
    """What a configuration of Grafana depends on."""

    page: str
    """Address of the page, as a browser needs it; it ends with a slash."""
    home: str
    """Directory of the ini file, the password and the provisioning, as Grafana sees it."""
    data: str
    """Directory that it may write to."""
    dashboards: Sequence[str]
    """Directories of dashboards; those of ours first."""
    prometheus: str | None
    """Where Grafana reaches Prometheus, as HOST:PORT; so for Tempo."""
    tempo: str | None
    is_default: bool = True
    """Whether Prometheus is the source that new panels ask; there may be one such only."""
    home_dashboard: str | None = None
    """The file of the dashboard that is shown first."""
    host: str = "127.0.0.1"
    port: int = 3000


def grafana_ini(setup: GrafanaSetup) -> str:
    """Write the ini file: whoever reaches it may look, and nothing is asked of the network."""
    home, data = _plain(setup.home), _plain(setup.data)
    parser = ConfigParser(interpolation=None)
    parser.read_dict(
        {
            "paths": {
                "data": data,
                "logs": f"{data}/logs",
                "plugins": f"{data}/plugins",
                "provisioning": f"{home}/provisioning",
            },
            "server": {"http_addr": setup.host, "http_port": str(setup.port)},
            "security": {"admin_user": "admin", "admin_password": f"$__file{{{home}/password}}"},
            "users": {"allow_sign_up": "false"},
            "auth.anonymous": {"enabled": "true", "org_role": "Viewer"},
            "analytics": {
                "reporting_enabled": "false",
                "check_for_updates": "false",
                "check_for_plugin_updates": "false",
                "feedback_links_enabled": "false",
            },
            "news": {"news_feed_enabled": "false"},
            "plugins": {"preinstall_disabled": "true", "public_key_retrieval_disabled": "true"},
            "log": {"mode": "console"},
        }
    )
    if setup.home_dashboard is not None:
        first = _plain(setup.home_dashboard)
        parser.read_dict({"dashboards": {"default_home_dashboard_path": first}})
    text = StringIO()
    parser.write(text)
    return f"; {_COMMENT}\n{text.getvalue()}"


def provisioning(setup: GrafanaSetup) -> dict[str, str]:
    """Write what Grafana finds at its start, by path below its provisioning directory."""
    sources = [source for source in (_prometheus(setup), _tempo(setup)) if source is not None]
    providers: list[Value] = [
        {
            "name": "rollscope" if number == 0 else f"more-{number}",
            "orgId": 1,
            "folder": "Rollscope" if number == 0 else "More",
            "type": "file",
            "disableDeletion": True,
            "allowUiUpdates": False,
            "updateIntervalSeconds": 30,
            "options": {"path": _plain(path), "foldersFromFilesStructure": False},
        }
        for number, path in enumerate(setup.dashboards)
    ]
    return {
        "datasources/rollscope.yaml": to_yaml({"apiVersion": 1, "datasources": sources}, _COMMENT),
        "dashboards/rollscope.yaml": to_yaml({"apiVersion": 1, "providers": providers}, _COMMENT),
    }


def _prometheus(setup: GrafanaSetup) -> dict[str, Value] | None:
    if setup.prometheus is None:
        return None
    links: list[Value] = [
        {
            "name": "session",
            "url": _plain(setup.page) + _SESSION,
            "urlDisplayLabel": "Open in Rollscope",
        }
    ]
    if setup.tempo is not None:
        trace = "Open the trace"
        links.append({"name": "trace_id", "datasourceUid": TEMPO_UID, "urlDisplayLabel": trace})
    return {
        **_source("Prometheus of Rollscope", "prometheus", PROMETHEUS_UID, setup.prometheus),
        "isDefault": setup.is_default,
        "jsonData": {
            "httpMethod": "POST",
            "timeInterval": "5s",
            "prometheusType": "Prometheus",
            "exemplarTraceIdDestinations": links,
        },
    }


def _tempo(setup: GrafanaSetup) -> dict[str, Value] | None:
    if setup.tempo is None:
        return None
    metrics: dict[str, Value] = {
        "datasourceUid": PROMETHEUS_UID,
        "spanStartTimeShift": "-5m",
        "spanEndTimeShift": "5m",
        "tags": [{"key": "rollscope.run", "value": "run"}],
        "queries": [
            {"name": "Sessions in flight", "query": "sum(rollscope_sessions_in_flight{$$__tags})"},
            {
                "name": "Phases, 95th percentile",
                "query": "histogram_quantile(0.95, sum by (le, phase) "
                "(rate(rollscope_phase_duration_seconds_bucket{$$__tags}[5m])))",
            },
        ],
    }
    return {
        **_source("Tempo of Rollscope", "tempo", TEMPO_UID, setup.tempo),
        "jsonData": {
            "nodeGraph": {"enabled": True},
            **({"tracesToMetrics": metrics} if setup.prometheus is not None else {}),
        },
    }


def _source(name: str, kind: str, uid: str, address: str) -> dict[str, Value]:
    url = f"http://{address}"
    return {"name": name, "type": kind, "uid": uid, "access": "proxy", "url": url, "orgId": 1}


def _plain(text: str) -> str:
    if "$" in text or "%(" in text or "\n" in text:
        raise CommandError(f"Grafana cannot be told of {text!r}: it would expand the sign in it", 2)
    return text
