"""Writing the files of a stack for use elsewhere: by hand, in containers, in an existing stack."""

import os
import secrets
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from rollscope.errors import CommandError
from rollscope.instrument.sinks.httpaddress import split_http
from rollscope.stack.configs.compose import IMAGES, compose_file, compose_layout
from rollscope.stack.configs.layout import Layout, config_files, prometheus_setup, shipped
from rollscope.stack.configs.prometheus import engine_job, own_job
from rollscope.stack.configs.recipe import compose_recipe, existing_recipe, native_recipe
from rollscope.stack.configs.tempo import TempoSetup
from rollscope.stack.configs.yaml import to_yaml
from rollscope.stack.members import LOOPBACK
from rollscope.stack.options import PORTS, retention_hours

__all__ = ["Form", "export_files", "stack_files"]

Form = Literal["native", "compose", "existing"]
_SECRETS: Final = ("token", "grafana/password")
"""Drawn once: whoever has been given them would be locked out."""

_THEIR_TOKEN: Final = "/etc/prometheus/rollscope-token"  # noqa: S105  (the path of a file)


def stack_files(form: Form, place: Path, page: str, retention: str) -> dict[str, str]:
    """Write all files of a form, by path below the place that they are meant for.

    Raises:
        CommandError: The address or the time cannot be used.
    """
    hours, port = retention_hours(retention), _port_of(page)
    password = secrets.token_urlsafe(18)
    if form == "existing":
        return _existing(place, page)
    if form == "compose":
        return {
            "README.md": compose_recipe(shlex.quote(str(place)), port),
            "compose.yaml": compose_file(os.getuid(), os.getgid(), retention),
            "token": secrets.token_urlsafe(24) + "\n",
            **config_files(compose_layout(page, port, hours), password),
        }
    return {
        "README.md": native_recipe(shlex.quote(str(place)), port, retention),
        "token": secrets.token_urlsafe(24) + "\n",
        **config_files(_native_layout(place, page, hours), password),
    }


def _port_of(page: str) -> int:
    parts = split_http(page)
    if parts is None or parts.query:
        raise CommandError(f"--server: {page!r} is no address such as http://127.0.0.1:7077/", 2)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _native_layout(place: Path, page: str, hours: int) -> Layout:
    data = {name: str(place / "data" / name) for name in IMAGES}
    return Layout(
        page=page,
        rollscope=urlsplit(page).netloc,
        token_file=str(place / "token"),
        homes={name: str(place / name) for name in IMAGES},
        data=data,
        addresses={name: f"{LOOPBACK}:{PORTS[name]}" for name in IMAGES},
        has_target_files=False,
        tempo=TempoSetup(data=data["tempo"], retention_hours=hours),
    )


def _existing(place: Path, page: str) -> dict[str, str]:
    layout = replace(
        _native_layout(place, page, 1), token_file=_THEIR_TOKEN, is_default_source=False
    )
    setup = prometheus_setup(layout)
    jobs = to_yaml({"scrape_configs": [own_job(setup), engine_job(setup)]}, "Written by rollscope.")
    sources = "grafana/provisioning/datasources/rollscope.yaml"
    dashboards = shipped("dashboards", ".json")
    return {
        "README.md": existing_recipe(page),
        "scrape.yml": jobs,
        **{f"rules/{name}": text for name, text in shipped("rules", ".yml").items()},
        sources: config_files(layout, "")[sources],
        **{f"grafana/dashboards/{name}": text for name, text in dashboards.items()},
    }


def export_files(place: Path, files: dict[str, str], *, can_replace: bool) -> list[Path]:
    """Put files below a directory; gives those that were written.

    Raises:
        CommandError: One is there already and must not be replaced.
    """
    there = [name for name in files if (place / name).exists()]
    if there and not can_replace:
        raise CommandError(
            f"{place} has {there[0]} and {len(there) - 1} more of these files already; --force "
            "replaces them, or give another --out"
            if len(there) > 1
            else f"{place} has {there[0]} already; --force replaces it, or give another --out"
        )
    if "compose.yaml" in files:
        for name in IMAGES:  # or the daemon would make them, for root
            (place / "data" / name).mkdir(parents=True, exist_ok=True)
    written = [place / name for name in files if name not in _SECRETS or name not in there]
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.relative_to(place).as_posix()
        path.touch(mode=0o600 if name in _SECRETS else 0o666)
        path.write_text(files[name])
    return written
