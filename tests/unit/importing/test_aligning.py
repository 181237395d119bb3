import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.accounts import Report
from rollscope.importing.areal_aligning import Alignment, estimate
from rollscope.importing.formats import Options
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_PERF = Path(__file__).parents[2] / "fixtures" / "areal" / "perf_tracer"
_SECOND = 10**9
_STARTS = """
    SELECT lane, min(start_ns) AS first FROM spans
    WHERE name IN ('train.update_weights', 'remote_inf_engine.pause_generation') GROUP BY 1"""


def _starts(run: Path) -> dict[str, int]:
    with RunStore(run) as store:
        return {row["lane"]: row["first"] for row in store.query(_STARTS).to_pylist()}


def _import(tmp_path: Path, *places: Path, **asked: Any) -> Report:
    return import_run(places, tmp_path / "run", options=Options(align=True), **asked)


@pytest.mark.parametrize("places", [("master", "rollout"), ("traces.json",), (".",)])
def test_the_sample_is_aligned_by_its_weight_updates(places: tuple[str], tmp_path: Path) -> None:
    report = _import(tmp_path, *(_PERF / place for place in places))
    master, worker = sorted(report.domains, key=lambda domain: domain.name)
    assert (master.clock, worker.clock) == ("unanchored", "aligned")
    assert (worker.offset_s, worker.spread_s, worker.pairs) == ("6.8", "0", 3)
    assert worker.aligned_to == "master-r0/perf"
    starts = _starts(tmp_path / "run")
    assert starts["master-r0"] == starts["rollout-r3"]
    assert any("6.8 s behind master-r0/perf, by 3 pairs" in told for told in report.warnings())


def test_nothing_is_aligned_unless_it_is_asked_for(tmp_path: Path) -> None:
    report = import_run([_PERF / "master", _PERF / "rollout"], tmp_path / "run")
    assert {domain.clock for domain in report.domains} == {"unanchored"}
    starts = _starts(tmp_path / "run")
    assert starts["master-r0"] - starts["rollout-r3"] == 6_800_000_000


def test_who_is_aligned_follows_the_offset_of_the_trainer(tmp_path: Path) -> None:
    zero = 1763000000 * _SECOND
    _import(tmp_path, _PERF / "master", _PERF / "rollout", offsets={"master-r0/perf": zero})
    starts = _starts(tmp_path / "run")
    assert starts["rollout-r3"] == starts["master-r0"] == zero + 38_500_000_000


def test_an_offset_that_was_given_goes_before_an_estimate(tmp_path: Path) -> None:
    offsets = {"rollout-r3/perf": 1763000000 * _SECOND}
    report = _import(tmp_path, _PERF / "master", _PERF / "rollout", offsets=offsets)
    assert [domain.clock for domain in report.domains] == ["unanchored", "offset"]


def test_where_nothing_fits_the_report_says_so(tmp_path: Path) -> None:
    report = _import(tmp_path, _PERF / "rollout")
    assert [domain.clock for domain in report.domains] == ["unanchored"]
    assert any("not aligned: no trainer" in told for told in report.warnings())


def test_aligned_spans_say_so(tmp_path: Path) -> None:
    _import(tmp_path, _PERF / "master", _PERF / "rollout")
    with RunStore(tmp_path / "run") as store:
        rows = store.query("SELECT DISTINCT lane, attrs::VARCHAR AS attrs FROM spans").to_pylist()
    clocks = {(row["lane"], json.loads(row["attrs"])["clock"]) for row in rows if row["lane"]}
    assert clocks == {("master-r0", "unanchored"), ("rollout-r3", "aligned")}


@pytest.mark.parametrize(
    ("reference", "other", "expected"),
    [
        ([10, 50, 90], [3, 43, 83], Alignment(7, 0, 3)),
        ([10, 50, 90], [3, 44, 85], Alignment(6, 2, 3)),
        ([10, 50, 90], [3], Alignment(7, 0, 1)),
        ([10, 50, 90], [], None),
        ([], [3], None),
        ([10, 50, 200], [43, 193, 300], None),
    ],
)
def test_pairs_that_do_not_belong_together_give_no_estimate(
    reference: list[int], other: list[int], expected: Alignment | None
) -> None:
    assert estimate(reference, other) == expected
