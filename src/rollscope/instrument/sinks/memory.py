"""The sink that keeps frames in memory, for tests and for looking at a tracer's own output."""

from rollscope.instrument.sinks import Frame, Opening

__all__ = ["MemorySink"]


class MemorySink:
    """Keeps every frame."""

    def __init__(self) -> None:
        self.openings: list[Opening] = []
        self.frames: list[Frame] = []
        self.closed = False

    def open(self, opening: Opening) -> None:
        """Remember who opened."""
        self.openings.append(opening)
        self.closed = False

    def write(self, frame: Frame) -> None:
        """Keep the frame."""
        self.frames.append(frame)

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True
