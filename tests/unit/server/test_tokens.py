from __future__ import annotations

from pathlib import Path

import pytest

from rollscope.errors import CommandError
from rollscope.server.tokens import fresh_token, kept_token


def test_fresh_tokens_differ_and_need_no_quoting() -> None:
    one, two = fresh_token(), fresh_token()

    assert one != two
    assert len(one) >= 32
    assert one.replace("-", "").replace("_", "").isalnum()


def test_a_token_file_is_made_for_its_owner_only_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "token"
    first = kept_token(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path) == first


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        ("short", 0o600, "at least 16"),
        ("two words in one long token", 0o600, "one word"),
        ("", 0o600, "delete it"),
        ("long-enough-and-readable", 0o644, "chmod 600"),
    ],
)
def test_a_token_file_that_is_no_secret_is_refused(
    tmp_path: Path, content: str, mode: int, told: str
) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)

    with pytest.raises(CommandError, match=told):
        kept_token(path)


def test_a_token_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot write the token file"):
        kept_token(tmp_path / "missing" / "token")
