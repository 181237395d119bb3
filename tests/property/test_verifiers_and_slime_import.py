"""Records of verifiers and slime with anything in any place: accounted for, and never an error."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.importing.running import import_run

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_EPISODES = [
    json.loads(line) for line in (_FIXTURES / "verifiers" / "traces.jsonl").read_text().splitlines()
]
_CACHE = json.loads((_FIXTURES / "slime" / "rollout_0.trace_timeline_cache.json").read_text())
_odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=20)
    | st.sampled_from([10**400, "<script>", 1794725170.5, -1.0, "x" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, part in inner:
        found.append((*path, key))
        if isinstance(part, dict | list):
            found += _places(part, (*path, key))
    return found


def _changed(value: Any, path: tuple[Any, ...], into: Any) -> Any:
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = into
    return copy


def _account(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_text(text)
        report = import_run([file], Path(folder, "run"))
    for account in report.files:
        aside = sum(one.count for one in account.set_aside.values())
        assert account.read == account.imported + account.duplicates + aside
    assert report.files[0].imported >= 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_episode_may_hold_anything_anywhere(data: st.DataObject) -> None:
    episode = data.draw(st.sampled_from(_EPISODES))
    path = data.draw(st.sampled_from(_places(episode)))
    odd = _changed(episode, path, data.draw(_odd))
    good = {**_EPISODES[0], "id": "good"}
    _account("traces.jsonl", "".join(json.dumps(one) + "\n" for one in (good, odd)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_row_may_hold_anything_anywhere(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(_CACHE["rows"]))
    path = data.draw(st.sampled_from(_places(row)))
    odd = _changed(row, path, data.draw(_odd))
    good = {**_CACHE["rows"][0], "trace_id": "good"}
    _account("rollout_3.trace_timeline_cache.json", json.dumps({**_CACHE, "rows": [good, odd]}))
