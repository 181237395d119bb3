"""A stand-in that is on for one test, recording into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rollscope.integrations.rl_insight as rl_insight
from rollscope.instrument import default
from rollscope.store.fold import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rollscope.store.fold import Folded

Begin = "Callable[..., Callable[[], Folded]]"


@pytest.fixture(autouse=True)
def off_at_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("RL_INSIGHT_SERVER_URL", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    yield
    rl_insight.finish()


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., Callable[[], Folded]]:
    """Give what calls `init`, and gives what reads the run after `finish`."""

    def start(**config: Any) -> Callable[[], Folded]:
        prometheus = {"metrics_report_port": None, **config.pop("prometheus", {})}
        settings = {"dir": str(tmp_path), **config.pop("rollscope", {})}
        whole = {"prometheus": prometheus, "rollscope": settings, **config}
        rl_insight.init("verl", "ppo", whole)
        place = tmp_path / default._tracer.run

        def read() -> Folded:
            rl_insight.finish()
            return read_run(place)

        return read

    return start
