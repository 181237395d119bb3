"""`rollscope targets`: the engines that a running server asks for metrics."""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec

from rollscope.cli.arguments import add_examples
from rollscope.cli.serverapi import Server, add_server_arguments, find_server
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.collect.targets import Target

__all__ = ["TargetsCommand"]

_PATH: Final = "targets"


class _Line(msgspec.Struct, kw_only=True):
    url: str
    run: str | None = None
    replica: str | None = None
    source: str = ""
    is_up: bool | None = None
    trouble: str = ""
    goes_ns: int | None = None


class _Gone(msgspec.Struct, kw_only=True):
    url: str
    run: str | None = None
    why: str = ""
    gone_ns: int = 0


class _Listed(msgspec.Struct):
    targets: list[_Line]
    gone: list[_Gone] = []
    problem: str = ""


class TargetsCommand:
    """Adds, lists and removes targets."""

    name = "targets"
    summary = "say which inference engines a running server asks for metrics"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        verbs = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
        add = verbs.add_parser("add", help="ask more engines", description="ask more engines")
        add.add_argument("targets", nargs="+", metavar="NAME=URL", help="an engine, as sessions "
                         "call it; NAME=, http:// and /metrics may be left out")  # fmt: skip
        add.add_argument("--label", action="append", default=[], metavar="KEY=VALUE",
                         help="added to all that they expose; may be repeated")  # fmt: skip
        listing = verbs.add_parser("list", help="show all", description="show all")
        listing.add_argument("--json", action="store_true", help="print the answer as JSON")
        remove = verbs.add_parser("remove", help="ask no more", description="ask no more")
        remove.add_argument("targets", nargs="+", metavar="URL", help="an engine that was added")
        for verb, act in ((add, _add), (listing, _list), (remove, _remove)):
            verb.add_argument("--run", help="the run they serve (default: the one being recorded)")
            add_server_arguments(verb)
            verb.set_defaults(act=act)
        add_examples(
            parser,
            "example: rollscope targets add replica-0=http://gpu-01:8000/metrics --label rack=3",
            "         rollscope targets list",
        )

    def run(self, args: Namespace) -> int:
        """Do it."""
        code: int = args.act(args)
        return code


def _add(args: Namespace) -> int:
    named = [_read(text) for text in args.targets]
    labels = dict(_read_label(text) for text in args.label)
    server = find_server(args)
    for target in named:
        body = {"url": target.address.url, "replica": target.replica, "labels": labels}
        answer = server.ask("POST", _PATH, body if args.run is None else {**body, "run": args.run})
        print(f"{target.address.url} is asked from now on.")
    if problem := _listed(server, answer).problem:
        print(f"It is forgotten when the server ends: {problem}.", file=sys.stderr)
    return 0


def _remove(args: Namespace) -> int:
    named = [_read(text) for text in args.targets]
    server = find_server(args)
    for target in named:
        query = {"url": target.address.url} | ({} if args.run is None else {"run": args.run})
        server.ask("DELETE", f"{_PATH}?{urlencode(query)}")
        print(f"{target.address.url} is asked no more.")
    return 0


def _list(args: Namespace) -> int:
    server = find_server(args)
    path = _PATH if args.run is None else f"run/{quote(args.run, safe='')}/{_PATH}"
    answer = server.ask("GET", path)
    listed = _listed(server, answer)
    if args.json:
        from rollscope.cli.terminal.output import print_json

        print_json(answer)
        return 0
    if listed.targets:
        _show(listed.targets)
    else:
        print("Nobody is asked for metrics; `rollscope targets add NAME=URL` changes that.")
    _show_gone(listed.gone)
    if listed.problem:
        print(f"Added ones are forgotten when the server ends: {listed.problem}.", file=sys.stderr)
    return 0


def _read(text: str) -> "Target":
    from rollscope.collect.targets import parse_named_target

    try:
        return parse_named_target(text)
    except ValueError as error:
        raise CommandError(f"targets: {error}", 2) from None


def _read_label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CommandError(f"--label: {text!r} is no KEY=VALUE", 2)
    return name, value


def _listed(server: Server, answer: Any) -> _Listed:  # noqa: ANN401  (what a server said)
    try:
        return msgspec.convert(answer, _Listed)
    except msgspec.ValidationError:
        raise CommandError(f"what answers at {server.url} is no Rollscope server") from None


def _show(lines: list[_Line]) -> None:
    from rollscope.cli.reading import check_extra

    check_extra()
    from rollscope.screens.tables import Column, Screen, clean, show_table

    columns = (
        Column("replica"),
        Column("address", can_shrink=True, least=20),
        Column("run", leaves=2),
        Column("from", leaves=1),
        Column("state"),
    )
    screen = Screen.of()
    rows = [
        (one.replica or "", one.url, one.run or "the live one", one.source, _state(one))
        for one in lines
    ]
    sys.stdout.write(show_table(columns, rows, screen))
    # What is wrong is a sentence, which a column of a narrow terminal would cut to nothing.
    for one in lines:
        if one.trouble:
            print(screen.fit(clean(f"{one.replica or one.url} {one.trouble}.")))


def _state(line: _Line) -> str:
    state = {True: "up", False: "down", None: "not asked yet"}[line.is_up]
    if line.goes_ns is None:
        return state
    minutes = max(line.goes_ns - time.time_ns(), 0) // 60_000_000_000
    return f"{state}, let go in {minutes} min"


def _show_gone(gone: list[_Gone]) -> None:
    if not gone:
        return
    from rollscope.screens.tables import Screen, clean, say_time

    for one in gone:
        text = f"Let go at {say_time(one.gone_ns)}: {clean(one.url)}, as {clean(one.why)}."
        print(Screen.of().fit(text))
