"""Files of targets may hold anything: what is a target is taken, and the rest harms nobody."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollscope.collect.discovery import discovery_groups
from rollscope.collect.targets import ListedTargets, make_target
from rollscope.collect.targetstore import TargetStore

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.sampled_from(["h:1", "url"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["targets", "url", "labels", "run", "replica"]) | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FILES = st.binary(max_size=60) | st.one_of(
    JSON, JSON.map(lambda inner: {"targets": [inner, {"url": "h:1"}]})
).map(lambda value: json.dumps(value).encode())
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@given(FILES)
def test_any_file_can_be_met(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = TargetStore(Path(folder))
        store.path.write_bytes(data)
        kept = store.claim()
        store.save(kept)
        store.close()

        assert TargetStore(Path(folder)).path.exists() == bool(kept)
        again = TargetStore(Path(folder))
        assert again.claim() == kept
        again.close()
        store.path.write_bytes(data)
        ListedTargets(store.path).read()


@given(
    st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=8),
    st.none() | st.text(max_size=20),
    st.sampled_from(["h:1", "https://h/m?a=b&a=c&%20=x", "[::1]:2", "h:3/?x-y=1"]),
)
def test_prometheus_can_use_any_target(labels: dict[str, Any], name: str | None, url: str) -> None:
    target = make_target(url, replica=name, labels=labels)

    for group in discovery_groups([target], "live"):
        assert all(LABEL.fullmatch(label) for label in group.labels)
        reserved = {label for label in group.labels if label.startswith("__")}
        assert {one for one in reserved if not one.startswith("__param_")} == {
            "__scheme__",
            "__metrics_path__",
        }
        assert group.labels["run"] == "live"
