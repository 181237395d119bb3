"""`update_prometheus_config`: tells a team's own Prometheus which servers to scrape.

It is called by trainers, so only wrong arguments raise; all that goes wrong outside is logged and
returned.
"""

import errno
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from rollscope.collect.addresses import parse_address
from rollscope.collect.discovery import DiscoveryGroup, encode_groups, label_name
from rollscope.stack.configfile import ConfigFile
from rollscope.stack.raynodes import on_every_node
from rollscope.stack.reloading import Peer, ask_config_file, reload_prometheus
from rollscope.stack.yamledges import UnsafeEdit

__all__ = [
    "ConfigUpdate",
    "Mode",
    "NodeUpdate",
    "WantedJob",
    "update_here",
    "update_prometheus_config",
]

Mode = Literal["http", "ray", "off"]
_JOB: Final = "rollout"
_JOB_CHARACTERS: Final = 200
_USUAL_PLACES: Final = (
    "/tmp/ray/session_latest/metrics/prometheus/prometheus.yml",  # noqa: S108  (where Ray has it)
    "/etc/prometheus/prometheus.yml",
)
_log = logging.getLogger("rollscope.stack")


class WantedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be scraped, and by whom; travels to the nodes of a cluster."""

    name: str
    targets: bytes
    """The content of the file of targets."""
    config_file: str | None
    peer: Peer
    is_reloaded: bool


class NodeUpdate(msgspec.Struct, kw_only=True):
    """What was done on one machine."""

    node: str
    config_file: str = ""
    targets_file: str = ""
    """Empty if no targets were written."""
    is_job_added: bool = False
    """Whether the configuration had to be changed."""
    backup: str = ""
    """The configuration as it was, if it was changed."""
    is_reloaded: bool = False
    problem: str = ""


class ConfigUpdate(msgspec.Struct, kw_only=True):
    """What `update_prometheus_config` has done."""

    job_name: str
    mode: Mode
    targets: int
    nodes: list[NodeUpdate]
    note: str = ""
    """What was done otherwise than asked, and why."""

    @property
    def is_done(self) -> bool:
        """Whether it is as asked; in a cluster on one node, as Prometheus need not be on all."""
        fine = [not node.problem for node in self.nodes]
        return any(fine) if self.mode == "ray" else bool(fine) and all(fine)


def update_prometheus_config(
    server_addresses: Sequence[str],
    job_name: str | None = None,
    labels: Sequence[Mapping[str, object]] | None = None,
    *,
    mode: Mode = "http",
    config_file: str | os.PathLike[str] | None = None,
    prometheus_url: str = "http://127.0.0.1:9090",
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
) -> ConfigUpdate:
    """Have a Prometheus scrape these servers, and no others for this job.

    The first call adds a job to the configuration, which names a file of targets; later ones
    rewrite that file. The rest of the configuration stays as it is, byte for byte.

    Args:
        server_addresses: `host:port`, or whole URLs.
        job_name: The job; `rollout` if not given.
        labels: For each address its labels.
        mode: `http` has Prometheus reload, `off` only writes, `ray` does both on every node.
        config_file: The configuration; if not given, Prometheus is asked where it is.
        prometheus_url: Where Prometheus is, seen from where the configuration is.
        headers: Sent to Prometheus, as Authorization.
        timeout_s: How long it may take to answer.

    Raises:
        ValueError: An argument makes no sense.
    """
    name = _checked_name(_JOB if job_name is None else job_name)
    if mode not in get_args(Mode):
        raise ValueError(f"mode is one of {', '.join(get_args(Mode))}, not {mode!r}")
    addresses = [server_addresses] if isinstance(server_addresses, str) else list(server_addresses)
    groups = _groups(addresses, labels)
    if not addresses:
        _log.warning("No addresses are given for the job %r; nothing is done", name)
        return ConfigUpdate(job_name=name, mode=mode, targets=0, nodes=[], note="no addresses")
    wanted = WantedJob(
        name=name,
        targets=msgspec.json.format(encode_groups(groups)) + b"\n",
        config_file=None if config_file is None else os.fspath(config_file),
        peer=Peer(prometheus_url, timeout_s, dict(headers or {})),
        is_reloaded=mode != "off",
    )
    update = ConfigUpdate(job_name=name, mode=mode, targets=len(addresses), nodes=[])
    if mode == "ray":
        update.note, given = on_every_node(update_here, wanted, 2 * timeout_s + 60.0)
        update.nodes = [
            one if isinstance(one, NodeUpdate) else NodeUpdate(node=node, problem=one)
            for node, one in given
        ]
    update.nodes = update.nodes or [update_here(wanted)]
    _tell(update)
    return update


def update_here(wanted: WantedJob) -> NodeUpdate:
    """Do it on this machine; trouble is returned."""
    done = NodeUpdate(node=os.uname().nodename)
    try:
        path = _find_config(wanted)
        config = ConfigFile(path)
        done.config_file = str(config.path)
        with config.locked():
            _write(config, wanted, done)
    except UnsafeEdit as error:
        done.problem = f"{done.config_file} stays as it is: {error}"
    except OSError as error:
        where = error.filename or done.config_file
        done.problem = f"{where}: {error.strerror}" if where else str(error.strerror)
    return done


def _write(config: ConfigFile, wanted: WantedJob, done: NodeUpdate) -> None:
    text = config.changed(wanted.name)
    config.write_targets(wanted.name, wanted.targets)
    done.targets_file = str(config.targets_file(wanted.name))
    backup = None
    if text is not None:
        backup = config.replace(text)
        done.is_job_added, done.backup = True, str(backup)
    if not wanted.is_reloaded:
        return
    reload = reload_prometheus(wanted.peer)
    done.is_reloaded, done.problem = not reload.problem, reload.problem
    if backup is not None and reload.is_refused:
        config.restore(backup)
        done.is_job_added = False
        done.problem += "; the configuration is as it was"


def _find_config(wanted: WantedJob) -> Path:
    if wanted.config_file is not None:
        return Path(wanted.config_file)
    said = ask_config_file(wanted.peer)
    places = ([said] if said else []) + list(_USUAL_PLACES)
    found = next(
        (place for place in places if os.path.isabs(place) and os.path.isfile(place)), None
    )
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "no configuration was found; give config_file")
    return Path(found)


def _checked_name(name: str) -> str:
    if not name or len(name) > _JOB_CHARACTERS or not name.isprintable():
        raise ValueError(f"a job's name has 1 to {_JOB_CHARACTERS} characters, not {name[:40]!r}")
    return name


def _groups(
    addresses: Sequence[str], labels: Sequence[Mapping[str, object]] | None
) -> list[DiscoveryGroup]:
    if labels is not None and len(labels) != len(addresses):
        raise ValueError(f"there are {len(addresses)} addresses and labels for {len(labels)}")
    return [
        _group(address, labels[number] if labels else {})
        for number, address in enumerate(addresses)
    ]


def _group(address: str, labels: Mapping[str, object]) -> DiscoveryGroup:
    parsed = parse_address(address)
    if "?" in parsed.path:
        raise ValueError("an address to be scraped has no query")
    place = {"__scheme__": parsed.scheme, "__metrics_path__": parsed.path}
    given = {label_name(str(name)): str(value) for name, value in labels.items()}
    shown = {name: text for name, text in given.items() if not name.startswith("__")}
    return DiscoveryGroup([parsed.instance], {**shown, **place})


def _tell(update: ConfigUpdate) -> None:
    if update.note:
        _log.warning("%s", update.note)
    for node in update.nodes:
        if node.problem:
            _log.warning("Prometheus on %s: %s", node.node, node.problem)
