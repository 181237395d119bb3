"""Fixtures of the integration tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.support import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Give a folder with a run that programs can record into; whatever still runs is killed."""
    # Tests that are run in the background of a shell ignore SIGINT, and programs inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lab = Lab(tmp_path)
    try:
        yield lab
    finally:
        lab.close()
        signal.signal(signal.SIGINT, before)
