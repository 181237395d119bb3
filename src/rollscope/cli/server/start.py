"""`rollscope server start`: our server and whatever was asked for beside it."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import check_extra
from rollscope.cli.server.table import add_state_dir, print_stack, say, state_dir
from rollscope.errors import CommandError
from rollscope.stack.looking import look_at
from rollscope.stack.options import PORTS, StackOptions, read_wanted
from rollscope.stack.programs import PROGRAMS, find_installed

__all__ = ["StartCommand"]

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class StartCommand:
    """Starts the stack."""

    name = "start"
    summary = "start the server, and the programs named by --with"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--detach", action="store_true", help="return when everything is ready, and stay"
        )
        parser.add_argument("--dir", default="runs", help="where the runs are (default: runs)")
        parser.add_argument(
            "--with",
            dest="wanted",
            default="",
            metavar="NAMES",
            help=f"programs to run beside it, as {','.join(PROGRAMS)}",
        )
        add_state_dir(parser)
        parser.add_argument(
            "--host",
            default="127.0.0.1",
            help="address that the page is served on; all others stay on 127.0.0.1",
        )
        parser.add_argument(
            "--no-token",
            action="store_true",
            help="let everybody on this machine in; only on a loopback address",
        )
        parser.add_argument(
            "--retention",
            default="15d",
            metavar="TIME",
            help="how long Prometheus and Tempo keep what they get (default: 15d)",
        )
        _add_programs(parser)
        parser.add_argument(
            "view_words",
            nargs="*",
            metavar="-- OPTION",
            help="what follows two dashes is given to rollscope view as it is",
        )
        add_examples(
            parser,
            "example: rollscope server start --dir runs",
            "         rollscope server start --detach --with prometheus,alertmanager",
            "         rollscope server start --detach -- --otlp-port --scrape-file targets.json",
        )

    def run(self, args: Namespace) -> int:
        """Start everything, and stay until Ctrl+C unless told to detach."""
        check_extra("starlette", "uvicorn")
        from rollscope.stack.starting import AlreadyRunning, run_stack, start_detached

        options = _options(args)
        try:
            if not args.detach:
                return run_stack(options, os.environ, say, lambda: _tell_ready(options, args))
            start_detached(options, os.environ, say)
        except AlreadyRunning:
            _tell_running(options)
        else:
            _tell_ready(options, args)
        return 0


def _add_programs(parser: ArgumentParser) -> None:
    """Declare what is said of each program: its port, where it is, what it is given."""
    for name, usual in PORTS.items():
        title = PROGRAMS[name].title if name in PROGRAMS else "the page"
        parser.add_argument(
            "--port" if name == "rollscope" else f"--{name}-port",
            dest=f"{name}_port",
            type=_port,
            metavar="PORT",
            help=f"port of {title} (default: {usual}, or the next that is free)",
        )
    for program in PROGRAMS.values():
        parser.add_argument(
            program.option,
            metavar="PATH",
            help=f"{program.title} to run (default: {program.variable}, or as found)",
        )
    parser.add_argument(
        "--alertmanager-config",
        type=Path,
        metavar="FILE",
        help="your own configuration of Alertmanager, which says whom alerts go to",
    )
    parser.add_argument(
        "--dashboards",
        type=Path,
        metavar="DIR",
        help="show the dashboards of this directory in Grafana too",
    )


def _options(args: Namespace) -> StackOptions:
    if args.no_token and args.host not in _LOOPBACK:
        raise CommandError(
            f"--no-token would let everybody who reaches {args.host} in; leave it out, or "
            "listen on 127.0.0.1",
            2,
        )
    return StackOptions(
        runs=Path(args.dir).absolute(),
        where=state_dir(args),
        wanted=read_wanted(args.wanted),
        host=args.host,
        has_token=not args.no_token,
        retention=args.retention,
        ports={name: getattr(args, f"{name}_port") for name in PORTS},
        programs={name: getattr(args, f"{name}_bin") for name in PROGRAMS},
        alertmanager_config=args.alertmanager_config,
        dashboards=args.dashboards,
        view_words=tuple(args.view_words),
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)


def _tell_ready(options: StackOptions, args: Namespace) -> None:
    print_stack(look_at(options.where))
    if "grafana" in options.wanted:
        password = options.where.path / "grafana" / "password"
        say(f"Grafana lets everybody look; the password of its admin is in {password}.")
    if hint := _hint(options):
        say(hint)
    print("rollscope server stop ends it." if args.detach else "Press Ctrl+C to stop.", flush=True)


def _hint(options: StackOptions) -> str:
    """Say what else could be run here."""
    others = [each.name for each in find_installed(os.environ) if each.name not in options.wanted]
    if not others:
        return ""
    names = ",".join((*options.wanted, *others))
    return f"Also installed here: {', '.join(others)}; to run it all, start with --with {names}."


def _tell_running(options: StackOptions) -> None:
    """Show the stack that runs already, once whoever starts it has written it down."""
    from rollscope.stack.stopping import check_host

    where = options.where
    if (holder := where.holder()) is not None:
        check_host(holder)
    stack = look_at(where)
    say("It runs already:" if stack.members else "It is being started by another process.")
    if stack.members:
        print_stack(stack)
    present = {each.name for each in stack.members}
    missing = [name for name in options.wanted if name not in present]
    if missing and stack.members:
        say(f"Without {', '.join(missing)}: stop it first to start it with more.")
