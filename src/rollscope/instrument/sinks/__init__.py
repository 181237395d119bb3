"""Sinks: where frames go. A sink may block or fail; the recorder is built to bear both."""

from typing import NamedTuple, Protocol, runtime_checkable

from rollscope.model.batch import ProcessHeader

__all__ = ["Frame", "NullSink", "Opening", "PatientSink", "Sink"]


class Opening(NamedTuple):
    """What a sink is told before its first frame."""

    run: str
    directory: str
    process: bytes
    header: ProcessHeader
    tags: dict[str, str]


class Frame(NamedTuple):
    """One frame on its way out."""

    data: bytes
    is_payload: bool = False
    """Whether it holds trajectory text, which is kept apart from timing."""


@runtime_checkable
class Sink(Protocol):
    """Takes the frames of one process, in order, from one thread.

    A method that raises is tried again with the same arguments, later and later.
    """

    def open(self, opening: Opening) -> None:
        """Get ready. Called again in a forked child, with the child's own header."""

    def write(self, frame: Frame) -> None:
        """Keep or send a frame; when it returns, the frame survives this process."""

    def close(self) -> None:
        """Let go of everything; no frame follows."""


@runtime_checkable
class PatientSink(Protocol):
    """A sink whose `close` goes on working for as long as it may."""

    def close_by(self, deadline_s: float) -> None:
        """Be told until when, by `time.monotonic`; from any thread, before `close` is called."""


class NullSink:
    """Keeps nothing: the cost of recording without the recording."""

    def open(self, opening: Opening) -> None:
        """Do nothing."""

    def write(self, frame: Frame) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
