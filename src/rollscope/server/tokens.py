"""Tokens: a fresh one per start, or one that a file keeps over restarts."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from rollscope.errors import CommandError

__all__ = ["fresh_token", "kept_token"]

_LEAST: Final = 16
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def fresh_token() -> str:
    """Draw a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def kept_token(path: Path) -> str:
    """Read the token that a file holds; make the file if there is none.

    Raises:
        CommandError: The file cannot be used; the message says why.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise CommandError(f"cannot write the token file {path}: {error.strerror}") from error
    token = fresh_token()
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{token}\n")
    return token


def _read(path: Path) -> str:
    try:
        mode, text = path.stat().st_mode, path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read the token file {path}: {error}") from error
    if mode & _OTHERS:
        raise CommandError(f"others may read the token file {path}; run: chmod 600 {path}")
    token = text.strip()
    if len(token) < _LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(
            f"the token file {path} must hold one word of at least {_LEAST} plain characters; "
            "delete it to have a new one made"
        )
    return token
