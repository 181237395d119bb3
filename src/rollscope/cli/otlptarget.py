"""Options of `rollscope export` that say where to, what they come to, and what was sent there."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.analysis.wording import say_seconds
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.otlp.export.exporter import Exported
    from rollscope.otlp.export.sending import Target
    from rollscope.otlp.export.settings import ExportSettings

__all__ = [
    "add_target_arguments",
    "endpoint_target",
    "export_settings",
    "make_target",
    "read_headers",
    "tell_exported",
]

_PROTOCOLS: Final = ("http/protobuf", "http/json", "grpc")


def add_target_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("where to, as OTLP")
    group.add_argument(
        "--endpoint", metavar="URL", help="where OTLP is taken, such as http://HOST:4318"
    )
    group.add_argument(
        "--protocol", choices=_PROTOCOLS, help="how it is spoken (default: http/protobuf)"
    )
    group.add_argument(
        "--header",
        action="append",
        metavar="NAME=VALUE",
        help="sent with each request, such as 'Authorization=Bearer ...'; may be repeated",
    )
    group.add_argument("--timeout", type=float, metavar="S", help="for one request")
    group.add_argument("--compression", choices=("gzip", "none"), help="(default: gzip)")
    group.add_argument(
        "--certificate", metavar="FILE", help="who signed the certificate of the endpoint"
    )


def export_settings(args: Namespace) -> "ExportSettings":
    """Read the options, and OpenTelemetry's variables where they say nothing.

    Raises:
        CommandError: One of them cannot be used.
    """
    from rollscope.otlp.export.settings import read_settings

    for name in ("batch", "timeout"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise CommandError(f"--{name} must be more than 0, not {value}", 2)
    if args.output is not None and args.endpoint is not None:
        raise CommandError("give either -o FILE or --endpoint URL, not both", 2)
    return read_settings(
        os.environ,
        endpoint=args.endpoint,
        protocol=args.protocol,
        headers=read_headers("--header", args.header),
        timeout_s=args.timeout,
        compression=args.compression,
        certificate=args.certificate,
        batch_spans=args.batch,
    )


def read_headers(option: str, given: list[str] | None) -> dict[str, str]:
    """Read headers of the form NAME=VALUE.

    Raises:
        CommandError: One is not of that form.
    """
    from rollscope.otlp.export.settings import parse_pairs

    try:
        return {name: value for one in given or () for name, value in parse_pairs(one).items()}
    except ValueError as error:
        raise CommandError(f"{option}: {error}", 2) from None


def make_target(args: Namespace, settings: "ExportSettings") -> "Target":
    """Give the way to the endpoint, or into the file.

    Raises:
        CommandError: Neither was named.
    """
    if args.output is not None:
        from rollscope.otlp.export.filetarget import FileTarget

        is_going_on = args.state is not None and Path(args.state).exists()
        return FileTarget(args.output, is_added_to=is_going_on)
    from rollscope.otlp.answering import Signal

    wanted = [Signal.TRACES] + [Signal.METRICS] * bool(args.metrics)
    if not all(signal in settings.endpoints for signal in wanted):
        raise CommandError(
            "say where to: --endpoint URL (or OTEL_EXPORTER_OTLP_ENDPOINT), or -o FILE", 2
        )
    return endpoint_target(settings)


def endpoint_target(settings: "ExportSettings") -> "Target":
    """Give the way to an endpoint, as its protocol demands."""
    if settings.protocol == "grpc":
        from rollscope.otlp.export.grpctarget import GrpcTarget

        return GrpcTarget(settings)
    from rollscope.otlp.export.httptarget import HttpTarget

    return HttpTarget(settings)


def tell_exported(args: Namespace, exported: "Exported", seconds: float) -> None:
    """Say what was sent."""
    if args.json:
        from rollscope.cli.terminal.output import print_json

        if args.output != "-":
            print_json(exported)
        return
    if args.output == "-":
        return
    parts = [f"{exported.spans} spans"]
    parts += [f"{exported.pending} open ones"] * bool(exported.pending)
    parts += [f"{exported.points} points of metrics"] * bool(exported.points)
    print(f"{', '.join(parts)} sent in {exported.requests} requests, {say_seconds(seconds)}")
    if exported.taken_before:
        print(f"{exported.taken_before} had been sent before")
    if exported.sampled_out:
        print(f"{exported.sampled_out} were left out by OTEL_TRACES_SAMPLER")
    if exported.rejected:
        print(f"the endpoint left out {exported.rejected} of them: {exported.said}")
