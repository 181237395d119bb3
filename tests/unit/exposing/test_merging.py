from __future__ import annotations

from rollscope.exposing.catalogue import FAMILIES, RUNS, STEP
from rollscope.exposing.merging import merge_families
from rollscope.metrics.families import Exposed, Family, FamilyKind, Point


def _family(name: str, kind: FamilyKind, *labels: str) -> Family:
    return Family(name=name, kind=kind, help="X.", labels=("run", *labels))


def test_points_of_all_runs_stand_below_one_name_in_the_order_of_the_catalogue() -> None:
    user = _family("rollscope_user_a", FamilyKind.GAUGE)
    merged = merge_families(
        [
            Exposed(user, [Point(("r1",), 1)]),
            Exposed(RUNS, [Point(("live",), 2)]),
            Exposed(STEP, [Point(("r1",), 3)]),
            Exposed(STEP, [Point(("r2",), 4)]),
        ]
    )
    assert [one.family for one in merged] == [STEP, RUNS, user]
    assert merged[0].points == [Point(("r1",), 3), Point(("r2",), 4)]


def test_labels_that_one_run_lacks_are_empty_there() -> None:
    name, kind = "rollscope_user_a", FamilyKind.GAUGE
    (merged,) = merge_families(
        [
            Exposed(_family(name, kind, "x"), [Point(("r1", "1"), 1)]),
            Exposed(_family(name, kind, "y"), [Point(("r2", "2"), 2)]),
        ]
    )
    assert merged.family.labels == ("run", "x", "y")
    assert merged.points == [Point(("r1", "1", ""), 1), Point(("r2", "", "2"), 2)]


def test_what_runs_call_alike_and_count_differently_is_told_apart() -> None:
    merged = merge_families(
        [
            Exposed(_family("rollscope_user_a", FamilyKind.GAUGE), [Point(("r1",), 1)]),
            Exposed(_family("rollscope_user_a_total", FamilyKind.COUNTER), [Point(("r2",), 2)]),
            Exposed(_family("rollscope_user_a", FamilyKind.HISTOGRAM), []),
        ]
    )
    assert [one.family.name for one in merged] == [
        "rollscope_user_a",
        "rollscope_user_a_counter_total",
        "rollscope_user_a_histogram",
    ]


def test_every_family_of_ours_is_listed_once_with_a_sentence() -> None:
    stems = [family.stem for family in FAMILIES]
    assert len(stems) == len(set(stems)) > 30
    for family in FAMILIES:
        assert family.name.startswith("rollscope_")
        assert family.help.endswith(".")
        assert family.name.endswith("_total") == (family.kind is FamilyKind.COUNTER)
        assert bool(family.bounds) == (family.kind is FamilyKind.HISTOGRAM)
