"""Somebody's configuration gets one job more, and stays what it was in all other respects."""

from __future__ import annotations

import copy
from itertools import takewhile
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rollscope.stack.prometheusconfig import has_job, targets_name, with_job
from rollscope.stack.yamledges import UnsafeEdit

JOB = "vllm"
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1_000, 1_000),
    st.sampled_from(
        ["a", "15s", "scrape_configs:", "x # y", "it's", '"q', "- a", "[", "a: b", "|", "\n", "é"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029\x00"), max_size=12),
    st.text(st.sampled_from("ab \n:#-'\"[{|>"), max_size=20),
)
KEYS = st.one_of(st.sampled_from(["job_name", "static_configs", "a", "b c"]), SCALARS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
CONFIGS = st.fixed_dictionaries(
    {"global": VALUES},
    optional={
        "scrape_configs": st.none()
        | st.lists(st.dictionaries(KEYS, VALUES, min_size=1), max_size=3),
        "rule_files": VALUES,
        "alerting": VALUES,
    },
)
PIECES = st.sampled_from(
    ["scrape_configs:", "global:", "a:", "b: ", "- ", "  ", "\n", "\n", "\n  ", "\n- ", "\r\n", "#",
     " # c", '"', "'", "''", "\\", "[", "]", "{", "}", ",", "|", ">-", "|+", "x", "job_name: y",
     "&a ", "*a", "!!str ", "? ", ": ", "---\n", "...\n", "\t", "é", "<<: ", "|2", "\n    ",
     "%YAML 1.1\n"]
)  # fmt: skip


def loaded(text: str) -> Any:
    return yaml.safe_load(text)


def check_only_the_job_is_new(text: str) -> None:
    before = loaded(text)
    after = loaded(with_job(text, JOB))
    expected = copy.deepcopy(before) or {}
    job = {"job_name": JOB, "file_sd_configs": [{"files": [targets_name(JOB)]}]}
    expected["scrape_configs"] = [job, *(expected.get("scrape_configs") or [])]
    assert after == expected
    assert has_job(with_job(text, JOB), JOB)


def kept_bytes(text: str) -> bool:
    """Say whether lines were put in at one place, and nothing else was touched."""
    changed = with_job(text, JOB)
    pairs = zip(text, changed, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return changed.endswith(text[same:])


@given(CONFIGS, st.sampled_from([None, '"', "'", "|", ">"]), st.booleans(), st.integers(20, 90))
def test_any_configuration_stays_what_it_was_but_for_the_job(
    config: dict[str, Any], style: str | None, is_cut: bool, width: int
) -> None:
    text = yaml.dump(
        config, default_style=style, default_flow_style=False, width=width, allow_unicode=True
    )
    text = text[:-1] if is_cut else text
    try:
        with_job(text, JOB)
    except UnsafeEdit:
        return
    check_only_the_job_is_new(text)
    assert kept_bytes(text)


@given(st.lists(PIECES, max_size=25).map("".join))
@example('a: "x\nscrape_configs: y"\n')
@example("a: [b,\nscrape_configs: ]\n")
@example("a: |\n  b")
@example("scrape_configs:")
@example("scrape_configs:\n  # of ours\n  - a: |\n     x\n    b: 'y'\n")
def test_what_is_not_understood_is_refused_and_never_changed_otherwise(text: str) -> None:
    try:
        before = loaded(text)
    except (yaml.YAMLError, ValueError, TypeError):
        return
    try:
        with_job(text, JOB)
    except UnsafeEdit:
        return
    assert before is None or isinstance(before, dict)
    check_only_the_job_is_new(text)


@pytest.mark.parametrize("indent", ["", "  ", "    "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_ordinary_configuration_is_not_refused(indent: str, newline: str) -> None:
    lines = [
        "# Ours.", "---", "global:", "  scrape_interval: 15s  # often",
        "  external_labels: {a: 'b'}",
        "rule_files:", '- "rules/*.yml"', "scrape_configs:", "# The first.",
        f"{indent}- job_name: node", f"{indent}  static_configs:",
        f"{indent}  - targets: ['h:9100', \"g:9100\"]", f"{indent}  relabel_configs:",
        f"{indent}  - regex: (.+)[:](\\d+)", "",
        "remote_write:", "- url: http://x/?a=b#c",
    ]  # fmt: skip
    text = newline.join(lines) + newline
    check_only_the_job_is_new(text)
    assert kept_bytes(text)
