"""What clients of RL-Insight ask of their server: where services are, and to scrape targets.

So `RL_INSIGHT_SERVER_URL` may name this server. Targets that come this way stand among those of
`/api/v1/targets`, with the job in the label `rl_insight_job`, and go by themselves as those do.
"""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.collect.scraping import Scraper
from rollscope.collect.targets import Target, make_target
from rollscope.collect.watchlist import Source, TargetFixed, key_of
from rollscope.model.undecodable import UNDECODABLE
from rollscope.server.failures import Failure
from rollscope.server.routes.context import given_parameters

__all__ = ["ROUTES"]

_BODY_BYTES: Final = 1024 * 1024
_USUAL_JOB: Final = "trainer_metrics"
_JOB: Final = "rl_insight_job"
_FORM: Final = 'Send {"job_name": "vllm", "targets": ["host:8000"]}.'


class _Named(msgspec.Struct):
    target: str
    labels: dict[str, Any] | None = None


class _Given(msgspec.Struct):
    targets: list[str | _Named]
    job_name: str | None = None
    labels: dict[str, Any] | None = None


def _scraper_of(request: Request) -> Scraper:
    scraper: Scraper = request.app.state.scraper
    return scraper


async def _services(request: Request) -> Response:
    """Say on which ports things are; we take OTLP on our own."""
    given_parameters(request, ())
    state = request.app.state
    grafana = state.monitors.grafana_url
    ports = {
        "status": "ok",
        "otlp_port": state.access.port,
        "prometheus_port": None,
        "grafana_port": None if grafana is None else urlsplit(grafana).port,
    }
    return _json(ports)


async def _register(request: Request) -> Response:
    given_parameters(request, ())
    given = await _read(request)
    scraper, job = _scraper_of(request), given.job_name or _USUAL_JOB
    try:
        wanted = [_target(one, given.labels or {}, job) for one in given.targets]
        for target in wanted:
            await scraper.register(target)
    except TargetFixed as error:
        raise Failure(409, f"{error}.", "Change what the server was started with.") from None
    except ValueError as error:
        text = str(error)
        raise Failure(400, f"{text[:1].upper()}{text[1:]}.", _FORM) from None
    file = scraper.targets_file
    return _json(
        {
            "status": "ok",
            "prometheus_reloaded": file is not None,  # it reads that file by itself
            "job_name": job,
            "target_count": len(wanted),
            "config_file": None,
            "targets_file": None if file is None else str(file),
        }
    )


async def _list(request: Request) -> Response:
    given_parameters(request, ())
    groups = [
        {"targets": [target.address.instance], "labels": target.labels}
        for target in _registered(request)
    ]
    return _json(groups)


async def _remove(request: Request) -> Response:
    given = given_parameters(request, ("job_name", "target"))
    if not given:
        raise Failure(400, "Nothing is named.", "Add ?job_name= or ?target=.")
    job, address = given.get("job_name"), given.get("target")
    removed = 0
    for target in _registered(request):
        is_meant = job in (None, target.labels[_JOB]) and _is_at(target, address)
        if is_meant and await _scraper_of(request).unregister(key_of(target)):
            removed += 1
    return _json({"status": "ok", "removed": removed})


def _registered(request: Request) -> list[Target]:
    watched = _scraper_of(request).watched()
    found = (one.watch.target for one in watched if one.source is Source.REQUEST)
    return [target for target in found if _JOB in target.labels]


def _is_at(target: Target, address: str | None) -> bool:
    if address is None:
        return True
    try:
        return make_target(address).address == target.address
    except ValueError:
        return False


def _target(given: str | _Named, shared: dict[str, Any], job: str) -> Target:
    url, own = (given, {}) if isinstance(given, str) else (given.target, given.labels or {})
    labels = {name: str(value) for name, value in {**shared, **own}.items()}
    return make_target(url, replica=labels.get("replica"), labels={**labels, _JOB: job})


async def _read(request: Request) -> _Given:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES:
            raise Failure(413, "That is too much for one request.", _FORM)
    try:
        given = msgspec.json.decode(body, type=_Given)
    except UNDECODABLE as error:
        raise Failure(400, f"Those are no targets: {error}.", _FORM) from None
    if not given.targets:
        raise Failure(400, "No targets are named.", _FORM)
    return given


def _json(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")


_PATH: Final = "/prometheus/targets"
ROUTES: Final = (
    Route("/services", _services, methods=["GET"]),
    Route(_PATH, _register, methods=["POST"]),
    Route(_PATH, _list, methods=["GET"]),
    Route(_PATH, _remove, methods=["DELETE"]),
)
