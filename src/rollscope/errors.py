"""Every error that Rollscope raises on purpose.

RollscopeError
├── SettingError        a setting has a value that cannot be used (also a ValueError)
├── NotARunError        a path does not hold a recorded run
├── FrameError          bytes are not a valid frame
│   └── UnknownSchema   the frame was written by a newer Rollscope
├── FilterError         a filter cannot be read (also a ValueError); points at a character
├── StoreError          a run's files cannot be used as they are
│   └── QueryError      a query cannot be run; the message says why
├── MissingExtra        a part of Rollscope is not installed (also an ImportError)
└── CommandError        a command cannot go on; carries its exit code
"""

__all__ = [
    "CommandError",
    "FilterError",
    "FrameError",
    "MissingExtra",
    "NotARunError",
    "QueryError",
    "RollscopeError",
    "SettingError",
    "StoreError",
    "UnknownSchema",
]


class RollscopeError(Exception):
    """Base of every error that Rollscope raises on purpose."""


class SettingError(RollscopeError, ValueError):
    """A setting has a value that cannot be used; the message names both and what is allowed."""


class NotARunError(RollscopeError):
    """A path does not hold a recorded run; the message says what was found there."""


class FrameError(RollscopeError):
    """Bytes are not a valid frame; the message says at which check they failed."""


class UnknownSchema(FrameError):
    """The frame was written by a newer Rollscope than this one."""


class FilterError(RollscopeError, ValueError):
    """A filter cannot be read; the message says what is allowed, `position` where it goes wrong."""

    def __init__(self, message: str, position: int) -> None:
        """Keep the character, from 0, that the error points at."""
        super().__init__(message)
        self.position = position


class StoreError(RollscopeError):
    """The files of a run cannot be used as they are; the message says what to do."""


class QueryError(StoreError):
    """A query cannot be run; the message says why."""


class MissingExtra(RollscopeError, ImportError):
    """A part of Rollscope is not installed; the message names the extra that brings it."""


class CommandError(RollscopeError):
    """A command cannot go on."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        """Keep the code that the command exits with."""
        super().__init__(message)
        self.exit_code = exit_code
