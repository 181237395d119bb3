"""The same suite on actors of a local Ray cluster.

Every runner needs a fresh process there, which takes most of a second; so what is the head's alone,
outcomes and waiting, is run only where ROLLSCOPE_TEST_ALL_ON_RAY is set.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rollscope
from rollscope.runner.ray import RayRunner
from tests.conformance import tasks
from tests.conformance.backends import Backend
from tests.conformance.test_steering import *  # noqa: F403  (run again, on this backend)
from tests.conformance.test_stopping import *  # noqa: F403
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if "ROLLSCOPE_TEST_ALL_ON_RAY" in os.environ:
    from tests.conformance.test_outcomes import *  # noqa: F403
    from tests.conformance.test_waiting import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.runner import Runner

pytestmark = IGNORE_LEAKS_OF_RAY


class OnRay(Backend):
    """A runner whose tasks run in another process."""

    name = "ray"
    is_local = False

    def start(self, **settings: Any) -> Runner:
        return RayRunner(actors=1, resources={"CPU": 0}, **settings).start()


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_cluster():
        yield


@pytest.fixture(autouse=True)
def no_leaks(clean_environment: None) -> Iterator[None]:
    """Look for threads only: Ray keeps its connections as long as it runs."""
    yield
    rollscope.shutdown()
    assert not [one for one in threading.enumerate() if one.name.startswith("rollscope-")]


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = OnRay()
    yield backend
    backend.close_all()


def test_what_is_started_can_be_entered_without_a_second_life(backend: Backend) -> None:
    async def main() -> None:
        runner = backend.start()
        handle = runner.submit(tasks.give, 1)
        async with runner:
            assert (await handle).value == 1

    asyncio.run(main())
