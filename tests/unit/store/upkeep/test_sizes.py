from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rollscope.store.upkeep.sizes import sizes_of
from tests.unit.store.upkeep.sealed_runs import open_sealer

if TYPE_CHECKING:
    from pathlib import Path


def test_sizes_add_up_to_what_lies_on_disk(run: Path) -> None:
    sizes = sizes_of(open_sealer(run))
    on_disk = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert sizes.total_bytes == on_disk
    assert sizes.logs == len(list((run / "log").iterdir()))
    assert msgspec.json.decode(msgspec.json.encode(sizes))["segments"] == sizes.segments
