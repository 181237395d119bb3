"""prometheus.yml: who is asked for metrics, which rules hold, and where alerts go."""

from dataclasses import dataclass

from rollscope.stack.configs.yaml import Value, to_yaml

__all__ = ["PrometheusSetup", "engine_job", "own_job", "prometheus_config"]


@dataclass(frozen=True, kw_only=True)
class PrometheusSetup:
    """What a configuration of Prometheus depends on; addresses are HOST:PORT."""

    page: str
    """Address of the page, as a browser needs it; it ends with a slash."""
    rollscope: str
    """Where Prometheus reaches our server."""
    token_file: str | None
    rules: str
    """Rule files, as a pattern."""
    engine_files: str | None = None
    """Target files of engines, as a pattern; without it our server is asked for the targets."""
    prometheus: str | None = None
    alertmanager: str | None = None
    tempo: str | None = None
    grafana: str | None = None

    @property
    def scheme(self) -> str:
        """How our server is spoken to."""
        return self.page.partition("://")[0]

    @property
    def instance(self) -> str:
        """The page's host and port: links in dashboards are made of it."""
        return self.page.partition("://")[2].partition("/")[0]


def prometheus_config(setup: PrometheusSetup) -> str:
    """Write the whole configuration."""
    others = {
        "prometheus": setup.prometheus,
        "alertmanager": setup.alertmanager,
        "tempo": setup.tempo,
        "grafana": setup.grafana,
    }
    jobs: list[Value] = [own_job(setup), engine_job(setup)]
    jobs += [
        {"job_name": name, "static_configs": [{"targets": [address]}]}
        for name, address in others.items()
        if address is not None
    ]
    config: dict[str, Value] = {
        "global": {
            "scrape_interval": "15s",
            "evaluation_interval": "15s",
            "external_labels": {"rollscope_url": setup.page},
        },
        "rule_files": [setup.rules],
        "scrape_configs": jobs,
    }
    if setup.alertmanager is not None:
        config["alerting"] = {
            "alertmanagers": [{"static_configs": [{"targets": [setup.alertmanager]}]}]
        }
    return to_yaml(config, "Written by rollscope; what is changed here is lost at the next start.")


def own_job(setup: PrometheusSetup) -> dict[str, Value]:
    """Describe how Prometheus asks our server for the metrics of all runs."""
    return {
        "job_name": "rollscope",
        "scrape_interval": "5s",
        "scrape_timeout": "5s",
        "scheme": setup.scheme,
        **_credentials(setup),
        "static_configs": [
            {"targets": [setup.rollscope], "labels": {"instance": setup.instance}},
        ],
    }


def engine_job(setup: PrometheusSetup) -> dict[str, Value]:
    """Describe how Prometheus asks inference engines, as our server knows them."""
    if setup.engine_files is not None:
        found: dict[str, Value] = {"file_sd_configs": [{"files": [setup.engine_files]}]}
    else:
        found = {
            "http_sd_configs": [
                {
                    "url": f"{setup.scheme}://{setup.rollscope}/api/v1/sd",
                    "refresh_interval": "15s",
                    **_credentials(setup),
                }
            ]
        }
    return {"job_name": "engines", "scrape_interval": "5s", "scrape_timeout": "5s", **found}


def _credentials(setup: PrometheusSetup) -> dict[str, Value]:
    if setup.token_file is None:
        return {}
    return {"authorization": {"type": "Bearer", "credentials_file": setup.token_file}}
