"""Other programs beside this server: how they are wired to it, trying that, and links to them."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.answers.sessionfinding import find_session
from rollscope.server.access import Access
from rollscope.server.failures import Failure
from rollscope.server.monitors import Link, Monitors, dashboard_links, trace_links
from rollscope.server.routes.context import given_parameters, run_of
from rollscope.server.wiretests import OwnAddress, known_tests, run_test
from rollscope.server.wiring import Reached, Wiring, wires
from rollscope.store.embedded import RunStore

__all__ = ["ROUTES", "Links"]


class Links(msgspec.Struct):
    """Where else to look."""

    links: list[Link]


async def _wiring(request: Request) -> Response:
    given_parameters(request, ())
    access = _access_of(request)
    reached = Reached(request.url.scheme, request.headers["host"], access.token is not None)
    return _json(Wiring(wires(request.path_params["run"], reached, _monitors_of(request))))


async def _test(request: Request) -> Response:
    name = given_parameters(request, ("test",)).get("test", "")
    if name not in known_tests():
        listed = ", ".join(known_tests())
        raise Failure(400, f"There is no test {name[:40]!r}.", f"There are: {listed}.")
    return _json(await run_test(name, _own_address(request), _monitors_of(request)))


async def _links(request: Request) -> Response:
    session = given_parameters(request, ("session",)).get("session")
    monitors = _monitors_of(request)
    if session is None:
        return _json(Links(dashboard_links(monitors, request.path_params["run"])))
    if monitors.grafana_url is None and monitors.tempo_url is None:
        return _json(Links([]))
    run = await run_of(request)
    trace_id = await run.ask(lambda store: _trace_id(store, session))
    return _json(Links(trace_links(monitors, trace_id)))


def _trace_id(store: RunStore, session: str) -> bytes:
    sql = "SELECT trace_id FROM spans WHERE span_id = $id LIMIT 1"
    found: bytes = store.query(sql, id=find_session(store, session))["trace_id"][0].as_py()
    return found


def _own_address(request: Request) -> OwnAddress:
    """Say where this server listens: at the address that took this request."""
    host, port = request.scope["server"]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    name, token = request.headers["host"], _access_of(request).token
    return OwnAddress(f"{request.scope['scheme']}://{place}", name, token)


def _access_of(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


def _monitors_of(request: Request) -> Monitors:
    monitors: Monitors = request.app.state.monitors
    return monitors


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


ROUTES: Final = (
    Route("/run/{run}/wiring", _wiring, methods=["GET"]),
    Route("/run/{run}/wiring", _test, methods=["POST"]),
    Route("/run/{run}/links", _links, methods=["GET"]),
)
