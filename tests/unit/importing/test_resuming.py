import os
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import CommandError
from rollscope.importing import passes
from rollscope.importing.checkpoints import Keeper
from rollscope.importing.running import Interrupted, import_run
from rollscope.store.embedded import RunStore

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_FOLDERS = ("areal", "chrome", "quirks", "rl_insight", "slime", "verifiers")
_SESSIONS = _FIXTURES / "areal" / "session_tracer"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(passes, "_TELL_EVERY", 1)
    monkeypatch.setattr(Keeper, "every_s", 0.0)


class _Stop:
    """Presses Ctrl+C after so many records, and lets the state be kept at every third only."""

    def __init__(self, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen, self._after = 0, after
        monkeypatch.setattr(Keeper, "is_due", lambda _: self.seen % 3 == 0)

    def __call__(self, done: int, total: int) -> None:
        self.seen += 1
        if self.seen == self._after:
            raise KeyboardInterrupt


def _tables(run: Path) -> dict[str, list[dict[str, Any]]]:
    queries = {
        "spans": "SELECT * EXCLUDE (process) FROM spans ORDER BY span_id, start_ns",
        "events": "SELECT * EXCLUDE (process) FROM events ORDER BY ALL",
        "metrics": "SELECT name, time_ns, value FROM metrics ORDER BY ALL",
        "processes": "SELECT host, pid, role, rank FROM processes ORDER BY ALL",
    }
    with RunStore(run) as store:
        return {name: store.query(query).to_pylist() for name, query in queries.items()}


@pytest.mark.parametrize("name", [*_FOLDERS, "xtuner_otlp", "xtuner_producer"])
def test_an_import_that_was_stopped_goes_on_to_the_same_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _FIXTURES / name
    counter = _Stop(0, monkeypatch)
    whole = import_run([folder], tmp_path / "whole", progress=counter)
    for after in (max(counter.seen // 3, 4), counter.seen - 1):
        run = tmp_path / f"r{after}"
        with pytest.raises(Interrupted) as stopped:
            import_run([folder], run, progress=_Stop(after, monkeypatch))
        assert stopped.value.share is not None
        assert not run.exists()
        report = import_run([folder], run, progress=_Stop(0, monkeypatch))
        assert report.resumed_at == stopped.value.share
        report.resumed_at, report.run = None, whole.run
        assert report == whole
        assert _tables(run) == _tables(tmp_path / "whole")
        assert not list((tmp_path / "cache").rglob("*.*"))


def test_records_that_were_written_before_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        import_run([_SESSIONS], run, progress=_Stop(100, monkeypatch))
    second = _Stop(0, monkeypatch)
    import_run([_SESSIONS], run, progress=second)
    assert second.seen == 2 * 64 - 99


def test_a_file_that_has_changed_makes_an_import_start_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "sessions.jsonl"
    lines = (_SESSIONS / "rollout" / "sessions-r0.jsonl").read_text().splitlines(keepends=True)
    source.write_text("".join(lines[:20]))
    with pytest.raises(Interrupted):
        import_run([source], tmp_path / "run", progress=_Stop(30, monkeypatch))
    source.write_text("".join(lines))
    report = import_run([source], tmp_path / "run")
    assert report.resumed_at is None
    assert [file.imported for file in report.files] == [len(lines)]


def test_a_draft_that_lacks_a_file_makes_an_import_start_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        import_run([_SESSIONS], run, progress=_Stop(120, monkeypatch))
    logs = sorted((tmp_path / ".run.importing" / "log").iterdir())
    logs[0].unlink()
    report = import_run([_SESSIONS], run)
    assert report.resumed_at is None
    assert sum(file.imported for file in report.files) == 64


def test_a_state_that_others_could_have_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        import_run([_SESSIONS], run, progress=_Stop(100, monkeypatch))
    (state,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert state.stat().st_mode & 0o777 == 0o600
    state.chmod(0o666)
    assert import_run([_SESSIONS], run).resumed_at is None


def test_an_import_without_a_place_for_its_state_is_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    report = import_run([_SESSIONS], tmp_path / "run")
    assert sum(file.imported for file in report.files) == 64
    with pytest.raises(Interrupted) as stopped:
        import_run([_SESSIONS], tmp_path / "other", progress=_Stop(100, monkeypatch))
    assert stopped.value.share is None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_state_that_nobody_came_back_to_goes_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        with pytest.raises(Interrupted):
            import_run([_SESSIONS], tmp_path / name, progress=_Stop(100, monkeypatch))
    first, second = sorted((tmp_path / "cache/rollscope/importing").iterdir())
    os.utime(first, (0, 0))
    import_run([_SESSIONS], tmp_path / "other", progress=_Stop(0, monkeypatch))
    assert list((tmp_path / "cache/rollscope/importing").iterdir()) == [second]


def test_two_imports_into_one_run_do_not_meet(tmp_path: Path) -> None:
    told: list[str] = []

    def second(done: int, total: int) -> None:
        with pytest.raises(CommandError) as error:
            import_run([_SESSIONS], tmp_path / "run")
        told.append(str(error.value))

    report = import_run(
        [_SESSIONS / "rollout" / "sessions-r0.jsonl"], tmp_path / "run", progress=second
    )
    assert report.files[0].imported == 36
    assert len(told) == 72
    assert "another import" in told[0]
