from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from rollscope.rollout.imports import import_object

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", ["json.decoder.JSONDecoder", "json.decoder:JSONDecoder"])
def test_a_path_leads_to_its_object(path: str) -> None:
    assert import_object(path) is json.JSONDecoder


@pytest.mark.parametrize(
    "path", ["", "json", "json.", ".x", "json.no_such", "no_such.thing", "a b.c"]
)
def test_a_path_that_leads_nowhere_is_an_import_error(path: str) -> None:
    with pytest.raises(ImportError):
        import_object(path)


def test_a_module_that_fails_while_it_is_loaded_is_an_import_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module_of_mine.py").write_text("1 / 0")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ImportError, match=r"broken_module_of_mine cannot be loaded: ZeroDivision"):
        import_object("broken_module_of_mine.thing")
