"""A small Ray of our own, for the tests that need one."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import ray

if TYPE_CHECKING:
    from collections.abc import Iterator

# Ray leaves its own pipes and sockets to the garbage collector.
IGNORE_LEAKS_OF_RAY = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@contextmanager
def small_cluster() -> Iterator[None]:
    """Start Ray on this machine, and end it."""
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100_000_000,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()
