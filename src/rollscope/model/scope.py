"""What a span belongs to: its trace, step, task and session.

One scope is made for each step, task, session or root span and shared by everything below it, so
that a span costs one pointer instead of six fields.
"""

from __future__ import annotations

__all__ = ["Scope", "ScopeRow"]

ScopeRow = tuple[bytes, "int | None", "str | None", "str | None", "int | None", "int | None"]
"""trace id, step, task key, group, session id, sample: a scope as a frame keeps it."""


class Scope:
    """The shared part of the spans of one session (or task, step, or root span).

    Compared by identity, which is what makes it a cheap key while frames are encoded.
    """

    __slots__ = ("encoded", "group", "sample", "session_id", "step", "task_key", "trace_id")

    def __init__(
        self,
        trace_id: bytes,
        step: int | None = None,
        task_key: str | None = None,
        group: str | None = None,
        session_id: int | None = None,
        sample: int | None = None,
    ) -> None:
        """Keep the fields as given."""
        self.trace_id = trace_id
        self.step = step
        self.task_key = task_key
        self.group = group
        self.session_id = session_id
        self.sample = sample
        self.encoded: ScopeRow | None = None
        """What the encoder made of it, kept because a session comes back in frame after frame."""

    def as_row(self) -> ScopeRow:
        """Give the fields in the order in which a frame keeps them."""
        return (
            self.trace_id,
            self.step,
            self.task_key,
            self.group,
            self.session_id,
            self.sample,
        )
