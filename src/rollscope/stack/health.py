"""Asking a program that was just started whether it is ready."""

from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError

from rollscope.stack.directhttp import direct_opener

__all__ = ["is_healthy"]

_TIMEOUT_S: Final = 2.0


def is_healthy(address: str, timeout_s: float = _TIMEOUT_S) -> bool:
    """Say whether an address answers with success."""
    try:
        with direct_opener().open(address, timeout=timeout_s) as answer:
            return 200 <= int(answer.status) < 300
    except HTTPError as error:
        error.close()
        return False
    except (OSError, HTTPException):
        return False
