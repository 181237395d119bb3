"""`init` and `finish`: recording begins and ends, once per process."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from typing import Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded, tell_once
from rollscope.instrument.sinks.httpaddress import is_loopback, parse_address
from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.configuring import MonitorConfig, is_config, load_config
from rollscope.integrations.rl_insight.endpoint import Endpoint
from rollscope.integrations.rl_insight.posting import post_in_background, wait_for_posts
from rollscope.integrations.rl_insight.sessions import Cancelled, Sessions
from rollscope.model.kinds import KIND_CODES, Kind

__all__ = ["close", "finish", "init"]

TARGETS_PATH: Final = "/api/v1/prometheus/targets"
TRAINER_JOB: Final = "trainer_metrics"
_STATE: Final = KIND_CODES[Kind.STATE]
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._+=@-]+")
_NAMESPACE: Final = b"rollscope"
_hooked = False


def init(
    project: Any = None,  # noqa: ANN401  (a name, or the configuration of the earlier form)
    experiment_name: str | None = None,
    config: Any = None,  # noqa: ANN401
) -> None:
    """Begin to record; once per process.

    It works without Ray and without a server: then the run is written to `runs/` here.

    Args:
        project: A label of everything, and the first part of the run's name. A configuration in
            its place is taken as one.
        experiment_name: A label of everything, and the second part.
        config: What differs from the defaults: a mapping, or an object with attributes.

    Raises:
        ValueError: The backend is unknown, or a value cannot be used.
    """
    if state.current is not None:
        text = "rl_insight.init was called before in this process; this call is ignored"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return
    if is_config(project):
        project, config = None, project
    loaded = load_config(config)
    names = {"project": project, "experiment_name": experiment_name}
    labels = {name: str(value) for name, value in names.items() if value is not None}
    with guarded("rl_insight.init"):
        _begin(loaded, labels)


def finish() -> None:
    """Write everything and stop; later calls do nothing until `init` is called again."""
    active, state.current = state.current, None
    if active is None:
        return
    with guarded("rl_insight.finish"):
        if active.endpoint is not None:
            _unregister(active)
            active.endpoint.close()
        wait_for_posts()
        if active.is_owner:
            _interrupt_states()
            default.shutdown()
        else:
            default.flush()


close = finish


def _begin(config: MonitorConfig, labels: dict[str, str]) -> None:
    is_owner = not default.enabled()
    if is_owner:
        settings: dict[str, Any] = {"tags": labels or None, **config.settings}
        settings.setdefault("sink", _sink(config))
        if "run" not in settings and not os.environ.get("ROLLSCOPE_RUN"):
            settings["run"] = _run_name(labels, config)
        default.init(**settings)
        if not default.enabled():  # ROLLSCOPE=off, or a fault that was told
            return
    if config.traces_endpoint and not config.url:
        tell_once(
            "rl-insight:otlp",
            "Rollscope keeps spans in the run; to have them at %s too: rollscope export %s "
            "--follow --endpoint %s",
            config.traces_endpoint,
            default._tracer.run,
            config.traces_endpoint.removesuffix("/v1/traces"),
        )
    endpoint = None
    if config.report_port is not None:
        endpoint = Endpoint(config, lambda host, port: _register(config, labels, host, port))
    state.current = state.Active(config, labels, endpoint, Sessions(), is_owner=is_owner)
    _hook_fork()


def _sink(config: MonitorConfig) -> str | None:
    """Choose where records go; None: as `ROLLSCOPE_SINK` says, else into files."""
    if config.url:
        return config.url
    is_ray = config.backend == "ray" and not os.environ.get("ROLLSCOPE_SINK")
    return "ray" if is_ray and _ray() is not None else None


def _ray() -> Any:  # noqa: ANN401  (Ray, which is never loaded by us)
    ray = sys.modules.get("ray")
    with suppress(Exception):
        if ray is not None and ray.is_initialized():
            return ray
    return None


def _run_name(labels: dict[str, str], config: MonitorConfig) -> str | None:
    """Name the run after project and experiment.

    Frameworks call `init` without names in their workers; within a job of Ray those use the name
    that was given last, and one of the job where none was.
    """
    name = _UNFIT.sub("_", "-".join(labels.values())).lstrip(".-")[:128] or None
    ray = _ray() if config.backend == "ray" else None
    if ray is None:
        return name
    with suppress(Exception):  # Ray's store is not ours to rely on
        from ray.experimental import internal_kv

        job = ray.get_runtime_context().get_job_id()
        key = f"rl_insight run {job}".encode()
        if name is not None:
            internal_kv._internal_kv_put(key, name.encode(), overwrite=True, namespace=_NAMESPACE)
            return name
        known: bytes | None = internal_kv._internal_kv_get(key, namespace=_NAMESPACE)
        return known.decode() if known else f"ray-{job}"
    return name


def _register(config: MonitorConfig, labels: dict[str, str], host: str, port: int) -> None:
    """Have the server know where metrics are, if it can reach them."""
    if not config.url or (is_loopback(host) and not is_loopback(parse_address(config.url).host)):
        return
    target = {"target": f"{host}:{port}", "labels": labels}
    post_in_background(config.url, TARGETS_PATH, {"job_name": TRAINER_JOB, "targets": [target]})


def _unregister(active: state.Active) -> None:
    config, endpoint = active.config, active.endpoint
    found = None if endpoint is None else endpoint.address()
    if config.url and found is not None:
        host, port = found
        if not is_loopback(host) or is_loopback(parse_address(config.url).host):
            wait_for_posts()
            path = f"{TARGETS_PATH}?target={host}:{port}"
            post_in_background(config.url, path, method="DELETE")


def _interrupt_states() -> None:
    """Close the lanes that are open: nobody will be there to see them end."""
    recorder = default._tracer._recorder
    if recorder is None:
        return
    for span in list(recorder.buffers.open.values()):
        if span.what == _STATE:
            span.fields["reason"] = "interrupted"
            span.__exit__(Cancelled, Cancelled(), None)


def _hook_fork() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    """Begin anew in a forked child: its metrics are its own, and so is its port."""
    active = state.current
    if active is not None:
        active.sessions = Sessions()
        if active.endpoint is not None:
            active.endpoint = active.endpoint.in_child()
