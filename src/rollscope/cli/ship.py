"""`rollscope ship`: what programs could not deliver to their server, by hand."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from rollscope.cli.arguments import add_examples
from rollscope.config import resolve
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.instrument.sinks.http import HttpSink
    from rollscope.instrument.sinks.spool import Spool
    from rollscope.instrument.sinks.spooldir import Destination

__all__ = ["ShipCommand"]

_REQUEST_BYTES: Final = 1024 * 1024
_LEAST_REQUEST_BYTES: Final = 64 * 1024
_PATIENCE_S: Final = 60.0
"""How long a server may ask to be left alone, before this gives up."""
_LEFT: Final = 1
"""Exit code if something is still there."""


class ShipCommand:
    """Delivers what processes that are gone have left in their spools."""

    name = "ship"
    summary = "send what programs recorded while their server was away"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "spool",
            nargs="?",
            metavar="SPOOL_DIR",
            help="directory of spools, or one of them (default: where programs leave them)",
        )
        parser.add_argument(
            "--to",
            metavar="URL",
            help="send it there, whatever server it was meant for; the token may stand in it",
        )
        add_examples(
            parser,
            "example: ROLLSCOPE_TOKEN=... rollscope ship",
            "         rollscope ship --to 'http://head:7077/?token=...'",
        )

    def run(self, args: Namespace) -> int:
        """Send everything; the exit code is 1 if something is left."""
        from rollscope.instrument.sinks.spool import Spool
        from rollscope.instrument.sinks.spoolhome import default_home, find_spools, is_abandoned

        given = {"sink": args.to, "spool_dir": args.spool}
        settings = resolve(given, os.environ)
        if args.to is not None and not args.to.startswith(("http://", "https://")):
            raise CommandError(f"{args.to} is no address such as http://HOST:PORT", 2)
        home = settings.spool_dir or default_home()
        if not os.path.isdir(home):
            raise CommandError(f"there is no directory of spools at {home}")
        found = list(find_spools(home)) or _single(home)
        is_all_gone = True
        for path, to in found:
            spool = Spool.claim(path) if is_abandoned(path, to) else None
            if spool is None:
                _say(to, f"process {to.pid} of {to.host} still looks after it")
                continue
            try:
                is_all_gone &= _ship(spool, args.to or to.address, settings.token, settings.ca_file)
            finally:
                spool.release()
        if not found:
            print(f"Nothing waits in {home}.")
        return 0 if is_all_gone else _LEFT


def _single(path: str) -> "list[tuple[str, Destination]]":
    from rollscope.instrument.sinks.spooldir import read_destination

    path = os.path.abspath(path)
    to = read_destination(path)
    return [] if to is None else [(path, to)]


def _say(to: "Destination", what: str, *, is_error: bool = False) -> None:
    print(f"run {to.run}: {what}", file=sys.stderr if is_error else sys.stdout, flush=True)


def _ship(spool: "Spool", address: str, token: str | None, ca_file: str | None) -> bool:
    """Deliver one spool; false if something of it is left."""
    from rollscope.instrument.sinks.http import HttpSink
    from rollscope.instrument.sinks.spoolhome import say_bytes

    to, size = spool.to, spool.waiting_bytes
    if not size:
        return True
    if not address.startswith(("http://", "https://")):
        _say(to, f"was meant for {address!r}; say with --to where it is to go", is_error=True)
        return False
    sink = HttpSink(address, token=token, ca_file=ca_file)
    try:
        with _bar(f"Sending run {to.run}") as progress:
            refused = _deliver(spool, sink, progress or _nobody)
    except Exception as error:  # whatever it is, the frames stay where they are
        why = str(error) or type(error).__name__
        left = say_bytes(spool.waiting_bytes)
        _say(to, f"cannot be sent to {sink.address}: {why}; {left} are left", is_error=True)
        return False
    finally:
        sink.disconnect()
    if refused:
        _say(to, f"{sink.address} has refused a part: {refused}; see {spool.path}", is_error=True)
        return False
    _say(to, f"{say_bytes(size)} of process {to.pid} of {to.host} sent to {sink.address}")
    return True


def _bar(label: str) -> "AbstractContextManager[Callable[[int, int], None] | None]":
    """Give a bar where there is what draws one: a node of a trainer may have the recorder only."""
    if any(find_spec(name) is None for name in ("rich", "pyarrow")):
        return nullcontext()
    from rollscope.cli.terminal.progress import bar_of

    return bar_of(label)


def _nobody(done: int, total: int) -> None:
    """Tell nobody."""


def _deliver(spool: "Spool", sink: "HttpSink", progress: Callable[[int, int], None]) -> str:
    """Deliver everything; gives why a part was refused, if one was."""
    from rollscope.instrument.sinks.collector import Busy, Delivery, Refused, TooLarge

    to, refused, most = spool.to, "", _REQUEST_BYTES
    give_up_s = time.monotonic() + _PATIENCE_S
    sink.connect()
    while data := spool.peek(most):
        try:
            sink.deliver(Delivery(to.run, to.tags, bytes.fromhex(to.process), data))
        except Busy as busy:
            needs_help = busy.why and not busy.may_pass
            if needs_help or time.monotonic() + busy.retry_after_s > give_up_s:
                raise
            time.sleep(busy.retry_after_s)
            continue
        except TooLarge:
            if most > _LEAST_REQUEST_BYTES:
                most //= 2
                continue
            refused = "a frame is too large"
            spool.set_aside(data)
        except Refused as refusal:
            refused = str(refusal)
            spool.set_aside(data)
        else:
            spool.take()
        give_up_s = time.monotonic() + _PATIENCE_S
        progress(spool.taken_bytes, spool.written_bytes)
    return refused
