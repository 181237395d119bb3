from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.packaging.environments import build_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))
