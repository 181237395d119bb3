from __future__ import annotations

from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rollscope.stack.configs.yaml import to_yaml

text = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["yes", "No", "null", "~", "1e3", "0x1f", "12:30", "- a", "a: b", "#", "15s"]),
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(text, st.integers(), st.booleans(), st.none(), numbers)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=12,
)


@example(document={"small": 1e-05, "large": 1e22}, comment="")
@given(document=st.dictionaries(text, values, min_size=1, max_size=4), comment=text)
def test_whatever_is_written_reads_back_as_itself(document: dict[str, Any], comment: str) -> None:
    assert yaml.safe_load(to_yaml(document)) == document
    plain = "".join(char for char in comment if char.isprintable())
    assert yaml.safe_load(to_yaml(document, plain)) == document
