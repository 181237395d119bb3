"""All dashboards as the files that the package ships."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.engines import engines
from dashboards.frame import rendered
from dashboards.overview import overview
from dashboards.rollout import rollout
from dashboards.staleness import staleness
from dashboards.tracer import tracer

__all__ = ["DASHBOARDS", "PLACE", "rendered_files"]

DASHBOARDS: Final[dict[str, Callable[[], Dashboard]]] = {
    "overview": overview,
    "rollout": rollout,
    "staleness": staleness,
    "engines": engines,
    "tracer": tracer,
}
"""By the names of their files."""
PLACE: Final = (
    Path(__file__).resolve().parent.parent / "src" / "rollscope" / "stack" / "static" / "dashboards"
)


def rendered_files() -> dict[Path, str]:
    """Give every file that there should be, and what should stand in it."""
    return {PLACE / f"{name}.json": rendered(make()) for name, make in DASHBOARDS.items()}
