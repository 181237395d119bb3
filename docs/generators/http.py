"""The reference of the HTTP API, from the routes of the server and the questions it answers."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Route

from docs.generators.routes import MEANINGS
from docs.generators.tables import GENERATED, table
from rollscope.answers.question import Parameter
from rollscope.answers.questions import QUESTIONS
from rollscope.server.access import Access
from rollscope.server.app import make_app
from rollscope.server.gate import Gate
from rollscope.server.hub import Hub
from rollscope.server.library import Library

__all__ = ["http_page", "routes_of_the_server"]

_ABOUT: Final = """\
`rollscope view` serves it; [Open the live page](../server.md) says who may ask, and with which
token. Every path can have the prefix of a proxy before it. `{run}` is the name of a run. Errors are
`{"error": …, "advice": …}` with a fitting status. What programs send is described with
[the wire](../wire.md) and [OTLP](../otlp.md), [events](../server.md#events) with the server."""
_ANSWERS: Final = """\
## Answers

`GET /api/v1/run/{run}/answer/NAME` gives one, as the JSON that commands print with `--json`; ids
are 16 hexadecimal digits. `GET /api/v1/schema` has the JSON schema of each. An answer with the
header `Rollscope-Stale` is older than the run: ask again after so many seconds."""


def http_page() -> str:
    """Give the page with every address of the server."""
    routes = sorted(routes_of_the_server())
    missing, gone = set(routes) - set(MEANINGS), set(MEANINGS) - set(routes)
    if missing or gone:
        raise LookupError(f"docs/generators/routes.py lacks {missing} and has {gone} too many")
    rows = [(f"`{method} {path}`", MEANINGS[method, path]) for path, method in _by_path(routes)]
    lines = ["# The HTTP API", "", GENERATED, "", _ABOUT, ""]
    lines += [*table(("request", "gives"), rows), "", _ANSWERS]
    for question in QUESTIONS.values():
        lines += ["", f"### {question.name}", "", f"{question.doc[:1].upper()}{question.doc[1:]}."]
        if question.parameters:
            parameters = map(_parameter_row, question.parameters)
            lines += ["", *table(("parameter", "kind", "default", "meaning"), parameters)]
    return "\n".join(lines) + "\n"


def routes_of_the_server() -> Iterator[tuple[str, str]]:
    """Give the method and path of each route, in the order in which they are tried."""
    with tempfile.TemporaryDirectory() as folder:
        gate = make_app(Library(Path(folder), Hub()), Access(token=None, port=0))
    if not isinstance(gate, Gate) or not isinstance(gate._app, Starlette):
        raise TypeError("the server is no longer routes behind a gate")
    yield from _routes(gate._app.routes)


def _routes(routes: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in routes:
        if isinstance(route, Mount):
            yield from _routes(route.routes, prefix + route.path)
        elif isinstance(route, Route):
            for method in (route.methods or {"GET"}) - {"HEAD"}:
                yield method, prefix + route.path


def _by_path(routes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted((path, method) for method, path in routes)


def _parameter_row(one: Parameter) -> tuple[str, str, str, str]:
    kind = ", ".join(f"`{choice}`" for choice in one.choices) or one.kind
    default = "has to be given" if one.is_needed else f"`{one.default}`" if one.default else ""
    return f"`{one.name}`", kind, default, one.doc
