from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.integrations import areal

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_tracer() -> Iterator[None]:
    yield
    areal.reset()
    areal.set_task_id(None)
    areal.set_session_id(None)
