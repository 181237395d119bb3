from __future__ import annotations

import pytest

from rollscope import errors


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_can_be_caught_as_ours(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.RollscopeError)


@pytest.mark.parametrize("name", errors.__all__)
def test_the_tree_in_the_docstring_names_every_error(name: str) -> None:
    assert name in str(errors.__doc__)


def test_a_command_error_carries_its_exit_code() -> None:
    assert errors.CommandError("no").exit_code == 1
    assert errors.CommandError("no", 3).exit_code == 3
    assert str(errors.CommandError("no", 3)) == "no"
