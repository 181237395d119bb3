"""Generated runs that the tests of answers ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollscope.store.embedded import RunStore
from rollscope.testing import RunTruth, generate_run
from tests.oracle import SECOND, SHAPES


def _open(folder: Path, shape: str, *, later_s: float) -> RunStore:
    truth: RunTruth = generate_run(folder / "run", SHAPES[shape])
    return RunStore(folder / "run", threads=1, now_ns=truth.end_ns + round(later_s * SECOND))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    """Give a run with a step under way: stuck sessions, gates, replicas, clocks that are off."""
    with _open(tmp_path_factory.mktemp("running"), "running", later_s=0.5) as store:
        yield store


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    """Give a run that is long over, with phases side by side and a process that died."""
    with _open(tmp_path_factory.mktemp("over"), "overlapping", later_s=86_400.0) as store:
        yield store
