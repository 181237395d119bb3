"""`rollscope view`: the live page over a run, or a directory of runs."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.arguments import add_examples
from rollscope.cli.importing import count_foreign, import_aside
from rollscope.cli.monitors import add_monitor_arguments, monitor_settings
from rollscope.cli.pushing import add_push_arguments, push_settings
from rollscope.cli.reading import check_extra
from rollscope.cli.scraping import add_scrape_arguments, scrape_settings
from rollscope.errors import CommandError, NotARunError
from rollscope.instrument.viewer import LOCK_FD
from rollscope.store.run import find_run, list_runs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from socket import socket

    from rollscope.server.access import Access
    from rollscope.server.listening import Listening

__all__ = ["ViewCommand"]

_OTLP_PORT: Final = 4318
_GRPC_PORT: Final = 4317
_UNTIL: Final = ("run", "stopped", "input")
"""What ends a viewer that a program has started: the end of its run, or only a signal."""


class ViewCommand:
    """Serves the page."""

    name = "view"
    summary = "serve the live page of a run, or of a directory of runs"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "place",
            nargs="?",
            metavar="RUN|DIR|FILE",
            help="a run directory, a run's name, a directory of runs (default: --dir), or files "
            "of another tool, as `rollscope import` reads them",
        )
        parser.add_argument("--dir", default="runs", help="where named runs are (default: runs)")
        parser.add_argument(
            "--port",
            type=_port,
            help="where to listen; 0 takes a free one (default: 7077 if free, else a free one)",
        )
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
        )
        parser.add_argument(
            "--no-token",
            action="store_true",
            help="let everybody on this machine in; only on a loopback address",
        )
        parser.add_argument(
            "--token-file",
            type=Path,
            metavar="FILE",
            help="keep the token in a file, so that the address stays the same; made if missing",
        )
        parser.add_argument(
            "--allow-host",
            action="append",
            default=[],
            metavar="NAME",
            help="another name this server goes by, as behind a proxy; may be repeated",
        )
        parser.add_argument(
            "--certfile",
            metavar="FILE",
            help="speak TLS with this certificate, in PEM form, with those that vouch for it",
        )
        parser.add_argument(
            "--keyfile", metavar="FILE", help="its key, if that is not in the same file"
        )
        parser.add_argument(
            "--otlp-port",
            type=_port,
            nargs="?",
            const=_OTLP_PORT,
            metavar="PORT",
            help=f"listen there too, as OpenTelemetry expects ({_OTLP_PORT}, or the next free)",
        )
        parser.add_argument(
            "--grpc-port",
            type=_port,
            nargs="?",
            const=_GRPC_PORT,
            metavar="PORT",
            help=f"take OpenTelemetry over gRPC there ({_GRPC_PORT}, or a free one)",
        )
        add_scrape_arguments(parser)
        add_monitor_arguments(parser)
        add_push_arguments(parser)
        parser.add_argument("--open", action="store_true", help="open the page in a browser")
        parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
        parser.add_argument("--until", choices=_UNTIL, help=SUPPRESS)
        add_examples(
            parser,
            "example: rollscope view runs/first",
            "         rollscope view runs --port 7077 --token-file ~/.rollscope-token",
        )

    def run(self, args: Namespace) -> int:
        """Serve until Ctrl+C."""
        if _is_beside(args):
            _drop_inherited()
        check_extra("starlette", "uvicorn")
        from rollscope.server.lean import without_pandas

        with without_pandas():
            from rollscope.server.access import is_loopback
            from rollscope.server.lifetime import input_closed, run_ended
            from rollscope.server.serving import run_server

        if args.no_token and not is_loopback(args.host):
            raise CommandError(
                f"--no-token would let everybody who reaches {args.host} in; leave it out, or "
                "listen on 127.0.0.1",
                2,
            )
        if args.no_token and args.token_file is not None:
            raise CommandError("--no-token and --token-file exclude each other", 2)
        scrape = scrape_settings(args)
        place, is_single = _find(args)
        endings: dict[str | None, Callable[[], Awaitable[None]]] = {
            "run": partial(run_ended, place),
            "input": input_closed,
        }
        with closing(_listen(args)) as listening:
            port = _port_of(listening.sockets[0])
            access = _access(args, port)
            run_server(
                place,
                access,
                listening,
                is_single=is_single,
                when_up=partial(_announce, args, access, listening, place, is_single),
                until=endings.get(args.until),
                scrape=scrape,
                monitors=monitor_settings(args),
                pushed=push_settings(args, place, port, is_single=is_single),
            )
        return 0


def _is_beside(args: Namespace) -> bool:
    """Say whether a program that records has started us beside itself."""
    return args.until in ("run", "stopped")


def _drop_inherited() -> None:
    """Close what the program that started us had open, such as its GPUs; but for our lock."""
    os.closerange(3, LOCK_FD)
    os.closerange(LOCK_FD + 1, os.sysconf("SC_OPEN_MAX"))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def _find(args: Namespace) -> tuple[Path, bool]:
    """Find what is to be shown, and say whether it is one run.

    Raises:
        NotARunError: There is no such run or directory.
    """
    if args.place is None:
        return Path(args.dir), False
    if _is_beside(args):
        return Path(args.place), True  # it is about to be made
    try:
        return _run_directory(find_run(args.place, args.dir)), True
    except NotARunError as error:
        place = Path(args.place)
        if place.is_file():
            return _import_file(place), True
        if place.is_dir():
            return _find_in_folder(place)
        if not Path(args.place).exists():
            # A slip of the pen is likelier than a wish for a new directory.
            raise NotARunError(
                f"{error}; to receive runs in a directory that is yet to be made: "
                f"rollscope view --dir {args.place}"
            ) from None
        raise


def _import_file(place: Path) -> Path:
    try:
        return import_aside(place)
    except CommandError as error:
        if error.exit_code != 1:
            raise
        raise CommandError(f"{place} is no run, and {error}") from None


def _find_in_folder(place: Path) -> tuple[Path, bool]:
    """Show the runs of a folder, else what other tools have written there, else what will come."""
    if list_runs(place):
        foreign = count_foreign(place)
        if foreign:
            files = "1 file" if foreign == 1 else f"{foreign} files"
            print(
                f"rollscope: {place} holds {files} of other tools too, which are not shown; for "
                f"those: rollscope import {place}",
                file=sys.stderr,
            )
        return place, False
    if not count_foreign(place):
        return place, False
    return import_aside(place), True


def _listen(args: Namespace) -> "Listening":
    from rollscope.server.listening import Listening, bind, bind_near, check_certificate

    if args.certfile is not None:
        check_certificate(args.certfile, args.keyfile)
    elif args.keyfile is not None:
        raise CommandError("--keyfile needs --certfile", 2)
    listening = Listening(
        [bind(args.host, args.port)], args.certfile, args.keyfile, args.host, args.grpc_port
    )
    if args.otlp_port is not None:
        try:
            listening.sockets.append(bind_near(args.host, args.otlp_port))
        except CommandError:
            listening.close()
            raise
    return listening


def _port_of(listening: "socket") -> int:
    port: int = listening.getsockname()[1]
    return port


def _run_directory(found: Path) -> Path:
    return found.parent.parent if found.is_file() else found


def _access(args: Namespace, port: int) -> "Access":
    from rollscope.server.access import Access, is_loopback, split_host
    from rollscope.server.tokens import fresh_token, kept_token

    token = None
    if not args.no_token:
        token = fresh_token() if args.token_file is None else kept_token(args.token_file)
    names = {split_host(name)[0] for name in (*args.allow_host, _as_header(args.host))}
    hosts = frozenset(names - {""})
    return Access(token=token, port=port, hosts=hosts, is_local=is_loopback(args.host))


def _as_header(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104  (only compared)
        import socket

        return socket.gethostname()  # the name in the address that is printed
    return f"[{host}]" if ":" in host else host


def _announce(
    args: Namespace,
    access: "Access",
    listening: "Listening",
    place: Path,
    is_single: bool,
    grpc_port: int | None,
) -> None:
    """Say where the page is; a program that we were started by owns the standard output."""
    from rollscope.server.listening import address_lines

    is_secure = listening.certfile is not None
    first, *others = address_lines(access, args.host, is_secure=is_secure)
    others += [f"It listens on port {_port_of(also)} too." for also in listening.sockets[1:]]
    others += [] if grpc_port is None else [f"It takes OTLP over gRPC on port {grpc_port}."]
    if not args.quiet:
        out = sys.stderr if _is_beside(args) else sys.stdout
        what = f"the run {place.resolve().name}" if is_single else f"the runs in {place}"
        print(f"Rollscope shows {what} at {first}", *others, sep="\n", file=out)
        if not args.until:
            print("Press Ctrl+C to stop.", file=out)
        out.flush()
    if _is_beside(args):
        # Whoever reads the program's output through a pipe waits until nobody can write to it.
        os.dup2(LOCK_FD, sys.stderr.fileno())
    if args.open:
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(first,), daemon=True).start()
