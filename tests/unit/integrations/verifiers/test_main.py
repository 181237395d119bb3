import threading
from pathlib import Path

import pytest

from rollscope.integrations.verifiers.__main__ import follow, main
from rollscope.store.embedded import RunStore

_EPISODES = Path(__file__).parents[3] / "fixtures" / "verifiers" / "traces.jsonl"


class _UntilIdle(threading.Event):
    """Is set as soon as somebody has nothing to do but to wait for it."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


def test_following_ends_with_a_whole_run(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "traces.jsonl").write_bytes(_EPISODES.read_bytes())
    assert follow(tmp_path / "out", tmp_path / "run", 1.0, _UntilIdle()) == 4
    with RunStore(tmp_path / "run") as store:
        assert store.query("SELECT 1 FROM sessions").num_rows == 4


def test_a_folder_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "nowhere"), "--dir", str(tmp_path)]) == 1
    assert "there is no folder" in capsys.readouterr().err
