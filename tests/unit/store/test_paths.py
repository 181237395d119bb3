from __future__ import annotations

import numpy as np

from rollscope.store.paths import PathTable


def resolve(
    table: PathTable, *rows: tuple[str, int], roots: tuple[int, ...] = (), known: str = ""
) -> list[tuple[str, ...]]:
    """Resolve rows of a name and their parent's row; give the names along each path."""
    names = list(dict.fromkeys(name for name, _ in rows))
    size = len(rows)
    paths, above = table.resolve(
        names,
        np.array([names.index(name) for name, _ in rows], np.int32),
        np.isin(np.arange(size), roots),
        np.array([parent for _, parent in rows], np.int32),
        np.full(size, table.code_of(known), np.int32),
    )
    separator = PathTable()
    text = separator.paths[separator.below(separator.below(0, "a"), "b")][1:-1]
    assert [table.paths[code] for code in above] == [
        table.paths[paths[parent]] if parent >= 0 else known for _, parent in rows
    ]
    return [tuple(table.paths[code].split(text)) for code in paths]


def test_children_before_and_after_their_parents_find_their_paths() -> None:
    found = resolve(PathTable(), ("c", 1), ("b", 2), ("a", -1), ("d", 0))
    assert found == [("a", "b", "c"), ("a", "b"), ("a",), ("a", "b", "c", "d")]


def test_a_path_begins_anew_at_a_root() -> None:
    assert resolve(PathTable(), ("a", -1), ("s", 0), ("b", 1), roots=(1,)) == [
        ("a",),
        ("s",),
        ("s", "b"),
    ]


def test_a_parent_known_from_elsewhere_leads_on() -> None:
    assert resolve(PathTable(), ("a", -1), known="x") == [("x", "a")]


def test_a_span_without_a_name_has_children_with_paths() -> None:
    found = resolve(PathTable(), ("", -1), ("a", 0), ("b", 1), ("c", 2))
    assert [path[-1] for path in found] == ["", "a", "b", "c"]
    assert found[3][-3:] == ("a", "b", "c")


def test_spans_that_are_their_own_ancestors_come_to_an_end() -> None:
    table = PathTable()
    names = np.zeros(2, np.int32)
    parents = np.array([1, 0], np.int32)
    paths, _ = table.resolve(["a"], names, np.zeros(2, bool), parents, np.zeros(2, np.int32))
    assert [table.paths[code] for code in paths] == ["a", "a"]


def test_the_same_path_has_one_code() -> None:
    table = PathTable()
    assert table.below(0, "a") == table.below(0, "a") == table.code_of("a")
    assert table.paths == ["", "a"]
