"""`rollscope export --format otlp`: a run sent to an endpoint, or as JSON lines to a file."""

import signal
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.forwarding import (
    add_forwarding_arguments,
    check_forwarding,
    forward,
)
from rollscope.cli.otlptarget import (
    add_target_arguments,
    export_settings,
    make_target,
    tell_exported,
)
from rollscope.cli.reading import check_extra, open_run
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.otlp.export.exporter import Exported, Exporter
    from rollscope.otlp.export.sending import Target
    from rollscope.otlp.export.settings import ExportSettings
    from rollscope.store.embedded import RunStore

__all__ = ["OtlpFormat"]

_STYLES: Final = ("rollscope", "logfire")
_NOTHING: Final = "OpenTelemetry is switched off by {}: nothing is sent"


class OtlpFormat:
    """Sends a run, once or as it grows."""

    name = "otlp"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the options of this format."""
        add_target_arguments(parser)
        group = parser.add_argument_group("what of it, as OTLP")
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
        add_forwarding_arguments(group)
        group.add_argument("--batch", type=int, metavar="N", help="spans in a request (512)")

    def run(self, args: Namespace) -> int:
        """Export, and say what was sent."""
        check_extra()
        check_forwarding(args)
        settings = export_settings(args)
        if args.output is None and settings.is_off:
            print(_NOTHING.format("OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER"), file=sys.stderr)
            return 0
        target = make_target(args, settings)
        try:
            if args.every_run:
                return forward(args, settings, target)
            with open_run(args) as store:
                _export(args, store, settings, target)
        finally:
            target.close()
        return 0


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
    tell_exported(args, exporter.exported, time.monotonic() - began)


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
