"""`update_prometheus_config`: has metrics of servers collected, in both forms of RL-Insight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rollscope.instrument.guard import tell
from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.configuring import MonitorConfig, is_config, load_config
from rollscope.integrations.rl_insight.lifecycle import TARGETS_PATH, TRAINER_JOB
from rollscope.integrations.rl_insight.posting import post_in_background

__all__ = ["update_prometheus_config"]

_MODES: Final = {"ray": "ray", "local": "http", "http": "http"}
_NOTHING: Final = ("none", "off")
Labels = Sequence[Mapping[str, Any] | None]


def update_prometheus_config(*args: Any, **given: Any) -> None:
    """Have servers asked for their metrics.

    - `update_prometheus_config(server_addresses, job_name=None, labels=None, config=None)` tells
      the server that `RL_INSIGHT_SERVER_URL` or the configuration names.
    - `update_prometheus_config(config, server_addresses, job_name=None, reload_mode=None)`, with a
      configuration or None first, changes the configuration of a Prometheus and has it reload.

    Raises:
        ValueError: There are more or fewer labels than addresses.
        TypeError: The arguments are those of neither form.
    """
    if _is_earlier(args, given):
        names = ("config", "server_addresses", "job_name", "reload_mode")
        if "conf" in given:
            given["config"] = given.pop("conf")
        bound = _bind(names, args, given)
        _change_files(load_config(bound["config"]), bound)
    else:
        bound = _bind(("server_addresses", "job_name", "labels", "config"), args, given)
        _tell_server(bound)


def _is_earlier(args: tuple[Any, ...], given: Mapping[str, Any]) -> bool:
    if args:
        return args[0] is None or is_config(args[0])
    if "conf" in given or "reload_mode" in given:
        return True
    config = given.get("config")
    return is_config(config) and not (isinstance(config, Mapping) and "server" in config)


def _bind(names: Sequence[str], args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(given.keys() - set(names))
    if len(args) > len(names) or unknown:
        raise TypeError(f"update_prometheus_config takes {', '.join(names)}, not {unknown or args}")
    bound = dict.fromkeys(names) | dict(zip(names, args, strict=False))
    return bound | {name: value for name, value in given.items() if value is not None}


def _addresses(bound: Mapping[str, Any], labels: Labels | None = None) -> list[str]:
    given = bound["server_addresses"]
    found = [given] if isinstance(given, str) else [str(one) for one in given or ()]
    if labels is not None and len(labels) != len(found):
        raise ValueError(f"there are {len(found)} addresses and labels for {len(labels)}")
    if not found:
        tell("No addresses are given to be asked for metrics; nothing is done")
    return found


def _tell_server(bound: Mapping[str, Any]) -> None:
    labels: Labels | None = bound["labels"]
    addresses = _addresses(bound, labels)
    if not addresses:
        return
    active = state.current
    is_own = bound["config"] is not None or active is None
    config: MonitorConfig = load_config(bound["config"]) if is_own else active.config  # type: ignore[union-attr]
    if not config.url:
        tell("No server is named by RL_INSIGHT_SERVER_URL; %s is not told of", addresses[0])
        return
    shared = {} if active is None else active.labels
    targets = [
        {
            "target": address,
            "labels": shared | {str(key): str(value) for key, value in (own or {}).items()},
        }
        for address, own in zip(addresses, labels or [None] * len(addresses), strict=True)
    ]
    body = {"job_name": bound["job_name"] or TRAINER_JOB, "targets": targets}
    post_in_background(config.url, TARGETS_PATH, body)


def _change_files(config: MonitorConfig, bound: Mapping[str, Any]) -> None:
    addresses = _addresses(bound)
    asked = str(bound["reload_mode"] or config.reload_mode).strip().lower()
    if not addresses or asked in _NOTHING:
        return
    if asked not in _MODES:
        tell("The reload mode %r is none of ray, local, none; nothing is done", asked)
        return
    from rollscope.stack.updating import update_prometheus_config as update

    try:
        update(
            addresses,
            bound["job_name"] or TRAINER_JOB,
            mode="ray" if _MODES[asked] == "ray" else "http",
            config_file=config.config_file,
            prometheus_url=f"http://127.0.0.1:{config.prometheus_port}",
        )
    except ValueError as error:
        tell("Prometheus is not told of %s: %s", addresses[0], error)
