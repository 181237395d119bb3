"""What went wrong last in a session that is open."""

import contextlib
from pathlib import Path

import rollscope as rs
from rollscope.answers.stuck import stuck
from rollscope.store.embedded import RunStore


def last_errors(run: Path) -> list[str | None]:
    rs.flush()
    with RunStore(run, threads=1) as store:
        return [row.last_error for row in stuck(store).rows]


def fail(reason: str) -> None:
    raise ValueError(reason)


def test_the_latest_error_inside_a_session_is_its_last(tmp_path: Path) -> None:
    rs.init(run="run", dir=tmp_path)
    with rs.task("a"), rs.session(sample=0):
        for reason in ("first", "second"):
            with contextlib.suppress(ValueError), rs.phase("toolcall"):
                fail(reason)

        assert last_errors(tmp_path / "run") == ["ValueError: second"]


def test_a_second_attempt_tells_what_ended_the_first(tmp_path: Path) -> None:
    rs.init(run="run", dir=tmp_path)
    with rs.task("a"):
        for sample in (0, 1):
            with contextlib.suppress(ValueError), rs.session(sample=sample, attempt=0):
                fail(f"sample {sample}")
        with rs.session(sample=1, attempt=1):
            assert last_errors(tmp_path / "run") == ["ValueError: sample 1"]

            with contextlib.suppress(ValueError), rs.phase("toolcall"):
                fail("again")
            assert last_errors(tmp_path / "run") == ["ValueError: again"]


def test_a_session_in_which_nothing_failed_has_none(tmp_path: Path) -> None:
    rs.init(run="run", dir=tmp_path)
    with rs.task("a"), rs.session(sample=0), rs.phase("generate"):
        assert last_errors(tmp_path / "run") == [None]
