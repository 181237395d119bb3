"""alertmanager.yml: alerts are grouped by run and shown, and sent to nobody."""

from rollscope.stack.configs.yaml import to_yaml

__all__ = ["alertmanager_config"]

_COMMENT = """\
Alerts are shown on Alertmanager's page and sent nowhere.
To have them sent, write a file of your own and give it as --alertmanager-config."""


def alertmanager_config() -> str:
    """Write the configuration of an Alertmanager that only shows alerts."""
    return to_yaml(
        {
            "route": {
                "receiver": "shown-only",
                "group_by": ["alertname", "run"],
                "group_wait": "10s",
                "group_interval": "1m",
                "repeat_interval": "4h",
            },
            "receivers": [{"name": "shown-only"}],
        },
        _COMMENT,
    )
