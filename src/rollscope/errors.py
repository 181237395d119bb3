"""The errors that Rollscope raises on purpose.

RollscopeError
├── SettingError        a setting has a value that cannot be used (also a ValueError)
├── NotARunError        a path does not hold a recorded run
├── FrameError          bytes are not a valid frame
│   └── UnknownSchema   the frame was written by a newer Rollscope
├── FilterError         a filter cannot be read (also a ValueError); points at a character
├── StoreError          a run's files cannot be used as they are
│   └── QueryError      a query cannot be run; the message says why
├── MissingExtra        a part of Rollscope is not installed (also an ImportError)
├── RunnerError         a task runner cannot do what was asked (also a RuntimeError)
│   ├── InboxFull       too many tasks wait to be started
│   ├── RunnerClosed    the runner takes or gives no more
│   ├── RunnerBroken    the runner, or every task of late, has failed
│   ├── GateBlocked     nothing can start, and nothing runs that would change that
│   ├── PlacementTimeout  actors could not be placed in time (also a TimeoutError)
│   └── StateError      the state of a runner cannot be kept or restored
├── IngestError         what was sent to a receiver was not kept; says when to try again
│   ├── FramesRefused   it can never be kept: it is no frame, or names what must not be
│   ├── WrongRun        this receiver takes another run only
│   ├── CollectorBusy   too much waits to be kept
│   ├── CollectorAway   the receiver stops, or another one holds the log
│   └── NoRoom          the disk is full, or a bound of the receiver is reached
├── WaitTimeout         not enough outcomes came in time (also a TimeoutError)
├── DuplicateTask       a task of that id is not finished yet (also a ValueError)
├── UnknownTask         no task of that id was ever submitted (also a LookupError)
├── OutcomeTaken        the outcome was handed to somebody already (also a LookupError)
└── CommandError        a command cannot go on; carries its exit code

What only a part of `rollscope.rollout` raises stands beside it: `RewardFailed`, `EndpointError` and
those below it, `BatchBudgetExceeded`, `EpisodeFailed`.
"""

__all__ = [
    "CollectorAway",
    "CollectorBusy",
    "CommandError",
    "DuplicateTask",
    "FilterError",
    "FrameError",
    "FramesRefused",
    "GateBlocked",
    "InboxFull",
    "IngestError",
    "MissingExtra",
    "NoRoom",
    "NotARunError",
    "OutcomeTaken",
    "PlacementTimeout",
    "QueryError",
    "RollscopeError",
    "RunnerBroken",
    "RunnerClosed",
    "RunnerError",
    "SettingError",
    "StateError",
    "StoreError",
    "UnknownSchema",
    "UnknownTask",
    "WaitTimeout",
    "WrongRun",
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


class RunnerError(RollscopeError, RuntimeError):
    """A task runner cannot do what was asked."""


class InboxFull(RunnerError):
    """Too many tasks wait to be started; this one was not taken."""


class RunnerClosed(RunnerError):
    """The runner takes no more tasks, or can no longer give what is waited for."""


class RunnerBroken(RunnerError):
    """The runner's loop has died, or every task of late has failed; the cause is in the text."""


class GateBlocked(RunnerError):
    """Nothing can start, and nothing runs that would change that; the message has the numbers."""


class PlacementTimeout(RunnerError, TimeoutError):
    """Actors could not be placed in time; the message names the resources that are missing."""


class StateError(RunnerError):
    """The state of a runner cannot be kept or restored; the message names the task."""


class IngestError(RollscopeError):
    """What was sent to a receiver was not kept; the message says why."""

    retry_after_s: float | None = None
    """When it makes sense to send it again; None: never."""


class FramesRefused(IngestError):
    """What was sent can never be kept: it is no frame, or names what must not be."""


class WrongRun(IngestError):
    """This receiver takes another run only."""

    retry_after_s = 30.0


class CollectorBusy(IngestError):
    """Too much waits to be kept."""

    retry_after_s = 1.0


class CollectorAway(IngestError):
    """The receiver stops, cannot write, or another one holds the log."""

    retry_after_s = 1.0


class NoRoom(IngestError):
    """The disk is full, or a bound of the receiver is reached."""

    retry_after_s = 5.0


class WaitTimeout(RollscopeError, TimeoutError):
    """Not enough outcomes came in time; none was taken."""

    def __init__(self, wanted: int, ready: int) -> None:
        """Keep how many were wanted and how many are there."""
        super().__init__(f"Timed out waiting for {wanted} outcomes, {ready} are ready.")
        self.wanted = wanted
        self.ready = ready


class DuplicateTask(RollscopeError, ValueError):
    """A task of that id is waiting, running, or has an outcome that nobody has fetched."""


class UnknownTask(RollscopeError, LookupError):
    """No task of that id was submitted."""


class OutcomeTaken(RollscopeError, LookupError):
    """The outcome of the task was handed to somebody already."""


class CommandError(RollscopeError):
    """A command cannot go on."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        """Keep the code that the command exits with."""
        super().__init__(message)
        self.exit_code = exit_code
