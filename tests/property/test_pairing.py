from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollscope.exposing.pairing import Pairing, Rows

IDS = st.integers(1, 12)
PIECES = st.lists(st.tuples(st.lists(IDS, max_size=4), st.lists(IDS, max_size=4)), max_size=5)


def _rows(ids: list[int], base: int) -> Rows:
    values = np.array([base + one for one in ids], np.int64)
    return Rows.first_of(np.array(ids, np.uint64), values)


def _waiting(pairing: Pairing) -> list[int]:
    return sorted(one for lot in pairing.sessions for one in lot.ids.tolist())


@given(PIECES)
def test_each_session_meets_the_first_fact_about_it_whichever_comes_first(
    pieces: list[tuple[list[int], list[int]]],
) -> None:
    seen: set[int] = set()
    pairing, found = Pairing(), []
    waiting: set[int] = set()
    facts: dict[int, int] = {}
    expected = []
    for number, (ended, told) in enumerate(pieces):
        new = sorted(set(ended) - seen)  # a session ends once
        seen.update(new)
        pairs, sessions, rest = pairing.match(_rows(new, 100), _rows(told, 1000 * number))
        pairing.keep(sessions, rest)
        found += list(zip(*(column.tolist() for column in pairs), strict=True))
        waiting.update(new)
        for one in sorted(set(told)):
            facts.setdefault(one, 1000 * number + one)
        for one in sorted(waiting & facts.keys()):
            expected.append((100 + one, facts.pop(one)))
            waiting.discard(one)
    assert sorted(found) == sorted(expected)
    assert _waiting(pairing) == sorted(waiting)


def test_a_copy_is_added_to_apart() -> None:
    pairing = Pairing()
    pairing.keep(_rows([1, 2], 0), _rows([], 0))
    copied = pairing.copy()
    pairs, _, _ = copied.match(_rows([], 0), _rows([2], 50))
    assert [column.tolist() for column in pairs] == [[2], [52]]
    assert _waiting(pairing) == [1, 2]
    assert _waiting(copied) == [1]
