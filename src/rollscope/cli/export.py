"""`rollscope export`: a run for other tools, as OTLP to an endpoint or a file."""

import os
import signal
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.arguments import add_examples, add_scope
from rollscope.cli.reading import add_reading_arguments, check_extra, open_run
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.otlp.export.exporter import Exported, Exporter
    from rollscope.otlp.export.sending import Target
    from rollscope.otlp.export.settings import ExportSettings
    from rollscope.store.embedded import RunStore

__all__ = ["ExportCommand"]

_FORMATS: Final = ("otlp",)
_STYLES: Final = ("rollscope", "logfire")
_PROTOCOLS: Final = ("http/protobuf", "http/json", "grpc")
_NOTHING: Final = "OpenTelemetry is switched off by {}: nothing is sent"


class ExportCommand:
    """Sends a run, once or as it grows."""

    name = "export"
    summary = "send a run on as OTLP, to an endpoint or into a file"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument("--format", choices=_FORMATS, default="otlp", help="(default: otlp)")
        self._add_place(parser)
        self._add_choice(parser)
        add_examples(
            parser,
            "example: rollscope export runs/my-run --endpoint http://tempo:4318",
            "         rollscope export runs/my-run -o my-run.jsonl --scope 30-40",
            "         rollscope export runs/my-run --endpoint http://tempo:4318 --follow "
            "--state my-run.sent",
            "",
            "OTEL_EXPORTER_OTLP_* and other variables of OpenTelemetry count where nothing else is "
            "said.",
        )

    def _add_place(self, parser: ArgumentParser) -> None:
        group = parser.add_argument_group("where to")
        group.add_argument(
            "-o", "--output", metavar="FILE", help="a file of JSON lines, - for the output"
        )
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

    def _add_choice(self, parser: ArgumentParser) -> None:
        group = parser.add_argument_group("what")
        group.add_argument("--metrics", action="store_true", help="metrics, beside the spans")
        group.add_argument("--follow", action="store_true", help="go on as the run grows")
        group.add_argument(
            "--state",
            metavar="FILE",
            help="keep in this file what was taken, and go on from there the next time",
        )
        group.add_argument(
            "--pending", action="store_true", help="tell of spans that have not ended, too"
        )
        group.add_argument(
            "--pending-style",
            choices=_STYLES,
            default="rollscope",
            help="how they are told of (default: rollscope)",
        )
        group.add_argument("--batch", type=int, metavar="N", help="spans in a request (512)")
        add_scope(parser)

    def run(self, args: Namespace) -> int:
        """Export, and say what was sent."""
        check_extra()
        settings = _settings(args)
        if args.output is None and settings.is_off:
            print(_NOTHING.format("OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER"), file=sys.stderr)
            return 0
        target = _target(args, settings)
        try:
            with open_run(args) as store:
                _export(args, store, settings, target)
        finally:
            target.close()
        return 0


def _settings(args: Namespace) -> "ExportSettings":
    from rollscope.otlp.export.settings import parse_pairs, read_settings

    for name in ("batch", "timeout"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise CommandError(f"--{name} must be more than 0, not {value}", 2)
    try:
        headers = {
            name: value for one in args.header or () for name, value in parse_pairs(one).items()
        }
    except ValueError as error:
        raise CommandError(f"--header: {error}", 2) from None
    if args.output is not None and args.endpoint is not None:
        raise CommandError("give either -o FILE or --endpoint URL, not both", 2)
    return read_settings(
        os.environ,
        endpoint=args.endpoint,
        protocol=args.protocol,
        headers=headers,
        timeout_s=args.timeout,
        compression=args.compression,
        certificate=args.certificate,
        batch_spans=args.batch,
    )


def _target(args: Namespace, settings: "ExportSettings") -> "Target":
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
    if settings.protocol == "grpc":
        from rollscope.otlp.export.grpctarget import GrpcTarget

        return GrpcTarget(settings)
    from rollscope.otlp.export.httptarget import HttpTarget

    return HttpTarget(settings)


def _export(
    args: Namespace, store: "RunStore", settings: "ExportSettings", target: "Target"
) -> None:
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.otlp.export.sending import ExportFailed

    stop = threading.Event()
    exporter = _exporter(args, store, settings, target, stop)
    began = time.monotonic()
    if args.follow:
        # Never between a request and the note that it was taken.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
    try:
        with bar_of("Sending", are_bytes=False) as progress:
            exporter.export(progress)
        if args.follow and not stop.is_set():
            print("rollscope: following the run; Ctrl+C ends it", file=sys.stderr, flush=True)
            exporter.follow()
    except ExportFailed as error:
        raise CommandError(f"{error}\n{_left(args, exporter.exported)}") from error
    _tell(args, exporter.exported, time.monotonic() - began)


def _exporter(
    args: Namespace,
    store: "RunStore",
    settings: "ExportSettings",
    target: "Target",
    stop: threading.Event,
) -> "Exporter":
    from rollscope.answers.scope import resolve_scope
    from rollscope.otlp.export.exporter import Exporter, Wanted
    from rollscope.otlp.export.position import Position
    from rollscope.otlp.export.sending import Sending

    scope = resolve_scope(store, args.scope)
    steps = None if scope.first is None or scope.last is None else (scope.first, scope.last)
    to = args.output or next(iter(settings.endpoints.values()))
    wanted = Wanted(
        steps=steps,
        pending=args.pending_style if args.pending else "",
        metrics=args.metrics and not (settings.are_metrics_off and args.output is None),
    )
    # Who follows a run waits for the endpoint to come back, however long that takes.
    sending = Sending(
        target,
        None if args.follow else settings.patience_s,
        sleep=stop.wait,
        tell=lambda what: print(f"rollscope: {what}", file=sys.stderr, flush=True),
    )
    return Exporter(
        store,
        sending,
        settings,
        Position(str(store.path.resolve()), f"{to} {args.scope}", _path(args.state)),
        wanted,
        as_json=args.output is not None or settings.protocol == "http/json",
        stop=stop,
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _left(args: Namespace, exported: "Exported") -> str:
    done = f"{exported.spans} spans were taken before that"
    if args.state is None:
        return f"{done}; with --state FILE the next export goes on from there"
    return f"{done}; the same command goes on from there"


def _tell(args: Namespace, exported: "Exported", seconds: float) -> None:
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
    print(f"{', '.join(parts)} sent in {exported.requests} requests, {seconds:.1f} s")
    if exported.taken_before:
        print(f"{exported.taken_before} had been sent before")
    if exported.sampled_out:
        print(f"{exported.sampled_out} were left out by OTEL_TRACES_SAMPLER")
    if exported.rejected:
        print(f"the endpoint left out {exported.rejected} of them: {exported.said}")
