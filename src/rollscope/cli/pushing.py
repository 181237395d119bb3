"""Options of `rollscope view` that say where metrics are sent to by themselves."""

import os
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.cli.otlptarget import endpoint_target, read_headers
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.exposing.pushing import Outlet, Pushed
    from rollscope.otlp.export.settings import ExportSettings

__all__ = ["add_push_arguments", "push_settings"]

_EVERY_S: Final = 15.0
_LEAST_EVERY_S: Final = 0.5
_MOST_EVERY_S: Final = 3600.0
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"


def add_push_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--remote-write",
        metavar="URL",
        help="send what /metrics shows there by Prometheus' remote write, as to "
        "http://[USER:PASSWORD@]HOST:9090/api/v1/write",
    )
    parser.add_argument(
        "--remote-write-header",
        action="append",
        metavar="NAME=VALUE",
        help="sent with it, such as X-Scope-OrgID=team; may be repeated",
    )
    parser.add_argument(
        "--remote-write-token-file",
        type=Path,
        metavar="FILE",
        help="sent with it as a bearer token; read again for each request",
    )
    parser.add_argument(
        "--remote-write-label",
        action="append",
        metavar="NAME=VALUE",
        help="a label of each series, beside job=rollscope and instance=HOST:PORT; may be repeated",
    )
    parser.add_argument(
        "--otlp-metrics",
        metavar="URL",
        help="send what /metrics shows there by OTLP, as to http://HOST:4318; variables of "
        "OpenTelemetry say the rest",
    )
    parser.add_argument(
        "--push-every",
        type=float,
        metavar="S",
        help=f"how many seconds apart it is sent (default: {_EVERY_S:g})",
    )


def push_settings(args: Namespace, place: Path, port: int, *, is_single: bool) -> "Pushed | None":
    """Read the options; None if nothing is to be sent.

    Args:
        args: The options.
        place: A run, or a directory of runs.
        port: Where the page is.
        is_single: Whether the place is a run.

    Raises:
        CommandError: One of them cannot be used.
        SettingError: A variable of OpenTelemetry, or an address, cannot be used.
    """
    from rollscope.exposing.pushing import Pushed

    host = socket.gethostname()
    instance = f"{host}:{port}"
    outlets: list[Outlet] = []
    every_s: float | None = args.push_every
    if args.remote_write is not None:
        outlets.append(_remote_write(args, instance))
    elif args.remote_write_header or args.remote_write_label or args.remote_write_token_file:
        raise CommandError("options of --remote-write need --remote-write URL", 2)
    if args.otlp_metrics is not None:
        names = {"service.instance.id": instance, "host.name": host}
        outlets += _otlp(args.otlp_metrics, names, _begins(place, is_single))
        if every_s is None and not args.remote_write:
            every_s = _variable_s()
    if every_s is not None and not _LEAST_EVERY_S <= every_s <= _MOST_EVERY_S:
        raise CommandError(
            f"metrics can be sent every {_LEAST_EVERY_S:g} to {_MOST_EVERY_S:g} seconds, see "
            f"--push-every and {_INTERVAL}",
            2,
        )
    return Pushed(outlets, every_s or _EVERY_S) if outlets else None


def _remote_write(args: Namespace, instance: str) -> "Outlet":
    from rollscope.exposing.pushing import Outlet
    from rollscope.exposing.remotewrite import RemoteTarget, RemoteWriter

    labels = {"job": "rollscope", "instance": instance}
    labels |= read_headers("--remote-write-label", args.remote_write_label)
    bad = [name for name in labels if not _is_label(name)]
    if bad:
        raise CommandError(f"--remote-write-label: {bad[0]!r} is no name of a label", 2)
    headers = read_headers("--remote-write-header", args.remote_write_header)
    target = RemoteTarget(args.remote_write, headers, args.remote_write_token_file)
    return Outlet("remote_write", RemoteWriter(labels), target)


def _is_label(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith("__")


def _otlp(endpoint: str, names: dict[str, str], began_ns: Callable[[str], int]) -> "list[Outlet]":
    from rollscope.exposing.pushing import Outlet
    from rollscope.otlp.answering import Signal
    from rollscope.otlp.export.families import FamilyWriter
    from rollscope.otlp.export.settings import read_settings

    settings = read_settings(os.environ, signal=Signal.METRICS, endpoint=endpoint)
    if settings.are_metrics_off:
        print("rollscope: OpenTelemetry is switched off: no metrics are sent", file=sys.stderr)
        return []
    writer = FamilyWriter(
        _resource(settings, names),
        as_json=settings.protocol == "http/json",
        batch=settings.batch_spans,
        began_ns=began_ns,
    )
    return [Outlet("otlp", writer, endpoint_target(settings))]


def _resource(settings: "ExportSettings", names: dict[str, str]) -> dict[str, Any]:
    known = {"service.name": "rollscope", **names, **settings.resource}
    return known | ({"service.name": settings.service_name} if settings.service_name else {})


def _begins(place: Path, is_single: bool) -> Callable[[str], int]:
    """Give what says when a run began; without a name, when this server did."""
    from rollscope.store.run import read_run_file

    now_ns = time.time_ns()

    def began_ns(run: str) -> int:
        if not run:
            return now_ns
        file = read_run_file(place if is_single else place / run)
        return 0 if file is None else file.created_ns

    return began_ns


def _variable_s() -> float | None:
    """Read how often OpenTelemetry would send metrics."""
    text = os.environ.get(_INTERVAL, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise CommandError(f"{_INTERVAL} is {text!r}: a whole number of milliseconds is wanted", 2)
    return int(text) / 1e3
