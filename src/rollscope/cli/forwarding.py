"""`rollscope export --every-run`: all runs of a directory, new ones as they come."""

import signal
import sys
import threading
import time
from argparse import Namespace, _ArgumentGroup
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.otlptarget import tell_exported
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.otlp.export.sending import Target
    from rollscope.otlp.export.settings import ExportSettings

__all__ = ["add_forwarding_arguments", "check_forwarding", "forward"]

_ONE_RUN_ONLY: Final = {"run": "the name of a run", "output": "-o FILE", "state": "--state FILE"}
"""What makes no sense for many runs, and how it is given."""
_ALL: Final = "all"


def add_forwarding_arguments(group: _ArgumentGroup) -> None:
    """Declare the options."""
    group.add_argument(
        "--every-run", action="store_true", help="all runs of --dir; with --follow new ones too"
    )
    group.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="of --every-run: keep in this directory what was taken of each run",
    )


def check_forwarding(args: Namespace) -> None:
    """See that the options go together.

    Raises:
        CommandError: They do not.
    """
    if not args.every_run:
        if args.state_dir is not None:
            raise CommandError("--state-dir goes with --every-run; one run has --state FILE", 2)
        return
    if args.state_dir is None:
        raise CommandError(
            "--every-run needs --state-dir DIR, where it keeps what was taken of each run", 2
        )
    given = [shown for name, shown in _ONE_RUN_ONLY.items() if getattr(args, name) is not None]
    given += ["--scope"] if args.scope != _ALL else []
    if given:
        raise CommandError(f"--every-run and {given[0]} exclude each other", 2)


def forward(args: Namespace, settings: "ExportSettings", target: "Target") -> int:
    """Send every run, and say what was sent; 1 if one could not be."""
    from rollscope.otlp.export.exporter import Wanted
    from rollscope.otlp.export.forwarding import Forwarder
    from rollscope.otlp.export.forwardstate import ForwardState
    from rollscope.otlp.export.sending import Sending

    stop = threading.Event()
    # Never between a request and the note that it was taken.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    began = time.monotonic()
    state = ForwardState(args.state_dir)
    try:
        patience_s = None if args.follow else settings.patience_s
        forwarder = Forwarder(
            Path(args.dir),
            state,
            Sending(target, patience_s, sleep=stop.wait, tell=_say),
            settings,
            Wanted(
                pending=args.pending_style if args.pending else "",
                metrics=args.metrics and not settings.are_metrics_off,
            ),
            as_json=settings.protocol == "http/json",
            threads=args.threads,
            stop=stop,
            tell=_say,
        )
        if args.follow:
            _say(f"sending the runs in {args.dir}; Ctrl+C ends it")
        exported = forwarder.follow() if args.follow else forwarder.forward()
    finally:
        state.close()
    tell_exported(args, exported, time.monotonic() - began)
    return 1 if forwarder.problems and not args.follow else 0


def _say(what: str) -> None:
    print(f"rollscope: {what}", file=sys.stderr, flush=True)
