"""What a generated run should look like, and what is true of it."""

from typing import Self

import msgspec

__all__ = ["RunShape", "RunTruth"]

_SPANS_PER_SESSION = 11.3
"""Mean over the default shape, measured; `sized` needs no more than the right magnitude."""


class RunShape(msgspec.Struct, frozen=True, kw_only=True):
    """The make-up of a generated run; the same shape always gives the same run."""

    seed: int = 0
    steps: int = 6
    tasks_per_step: int = 16
    group_size: int = 4
    """Sessions per task."""
    rollout_processes: int = 3
    slots: int = 12
    """Sessions that one rollout process runs at once."""
    tools: tuple[str, ...] = ("python", "browser", "search")
    max_turns: int = 6
    failure_share: float = 0.04
    timeout_share: float = 0.02
    rejected_share: float = 0.15
    stuck_sessions: int = 2
    """Sessions of the last step that never end, in a process that lives."""
    dying_process: bool = True
    """Whether the last rollout process is killed in the middle of the last step."""
    clock_offsets_s: tuple[float, ...] = (0.0, 0.004, -2.1)
    """How far the clocks of the hosts are off, host by host, then from the start again."""
    start_ns: int = 1_790_000_000_000_000_000
    drain_s: float = 0.2
    frame_rows: int = 0
    """Rows per frame; 0 for what a drain every `drain_s` would have found."""

    # What most runs have little of, and every reader must get right. None of it is there unless
    # asked for, and it changes nothing else about the run.
    records_steps: bool = True
    ends_last_step: bool = True
    """Whether the last step is over; else its trainer still waits for the batch."""
    parallel_tools: int = 1
    """Tool calls that a turn makes side by side."""
    nested_share: float = 0.0
    """Tool calls with an `env` phase inside."""
    outliving_share: float = 0.0
    """Requests that go on when their phase has ended, and perhaps their session."""
    straggling_share: float = 0.0
    """Sessions with an `upload` phase that begins after their end."""
    queue_share: float = 0.0
    """Phases that say how long they waited for their service."""
    retry_share: float = 0.0
    """Failed sessions that are tried a second time, the first attempt never being consumed."""
    late_share: float = 0.0
    """Sessions that only the following step consumes; those of the last step are not consumed."""
    late_verdict_share: float = 0.0
    """Sessions whose verdict is told after their end."""
    unassigned_share: float = 0.0
    """Tasks of which no step is known."""
    family_share: float = 0.0
    """Sessions that name their task's family themselves."""
    replicas: int = 0
    """Replicas that the sessions of each process are pinned to; 0 if they are pinned to none."""
    deadline_s: float = 0.0
    """When sessions should have ended; 0 for no deadline."""
    remote_rewards: bool = False
    """Whether rewards are computed by a process of their own."""
    gates: bool = False
    """Whether pools tell when they were paused, held back or empty."""
    declares_slots: bool = False
    loop_lag: bool = False
    """Whether event loops tell how late they were."""
    stacks: bool = False
    """Whether stuck sessions tell where they hang."""

    @classmethod
    def sized(cls, spans: int, *, seed: int = 0) -> Self:
        """Give a shape with about as many spans as asked for, on a cluster that fits them."""
        sessions = max(int(spans / _SPANS_PER_SESSION), 4)
        processes = min(max(sessions // 2_000, 2), 16)
        per_step = min(max(sessions // 4, 4), processes * 256)
        return cls(
            seed=seed,
            steps=max(round(sessions / per_step), 1),
            tasks_per_step=max(per_step // 4, 1),
            group_size=4,
            rollout_processes=processes,
            slots=64,
            frame_rows=1000,
        )


class RunTruth(msgspec.Struct, kw_only=True):
    """What a reader of a generated run must find."""

    spans: dict[str, int] = {}
    """Kind to number of spans, each counted once."""
    outcomes: dict[str, int] = {}
    """Outcome to number of sessions; sessions without a verdict are not in it."""
    stuck: list[str] = []
    """Ids of the sessions that hang in a living process."""
    lost: list[str] = []
    """Ids of the sessions that died with their process."""
    processes: int = 0
    end_ns: int = 0
    """Wall time of the last record, on a clock that is right."""

    @property
    def total_spans(self) -> int:
        """How many spans there are."""
        return sum(self.spans.values())
