"""One life of an executor, from `initialize` to `destroy`: its runner, its gate, its counters."""

from __future__ import annotations

import threading
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from rollscope.errors import GateBlocked, InboxFull, WaitTimeout
from rollscope.instrument import default as tracing
from rollscope.rollout.admitting import EpisodeGate
from rollscope.rollout.batches import BatchCollector
from rollscope.rollout.capacity import EngineVersion
from rollscope.rollout.deliveries import Deliveries, unused
from rollscope.rollout.dump import DumpWriter, load_tokenizer
from rollscope.rollout.loader import Drawn
from rollscope.rollout.samples import Sampling
from rollscope.rollout.settling import EpisodeGroup
from rollscope.runner import Runner, TaskOptions
from rollscope.runner.admission import BLOCKED_S

if TYPE_CHECKING:
    import logging

    from rollscope.rollout.capacity import ExecutorSettings
    from rollscope.rollout.deliveries import Settled, Unused
    from rollscope.rollout.engine import Engine
    from rollscope.rollout.loader import LoaderCursor
    from rollscope.rollout.recipes import Recipe
    from rollscope.rollout.samples import Episode
    from rollscope.runner import CloseReport, Outcome
    from rollscope.runner.groups import GroupOutcome
    from rollscope.runner.waiters import Order

__all__ = ["Execution"]

_NO_LIMIT: Final = 2**62
_COUNTED: Final = ("accepted", "rejected", "running", "enqueued")
_BOUND_GAUGE: Final = "rollscope.staleness_bound"


class Execution:
    """Everything that an executor makes anew when it is initialized.

    Args:
        settings: As read from the host's configuration.
        engine: What workflows generate with.
        version: Tells the engine's version.
        manager: Counts items; nothing else does.
        logger: Where to log.
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        engine: Engine,
        version: EngineVersion,
        manager: Any,  # noqa: ANN401  (ours, or one with the same calls)
        logger: logging.Logger,
    ) -> None:
        self.manager = manager
        self.deliveries = Deliveries()
        self.cursor: LoaderCursor | None = None
        self.is_over = False
        self._settings = settings
        self._logger = logger
        self._lock = threading.Lock()
        self._next_id = 0
        self._is_dynamic: bool | None = None
        self._using = threading.RLock()
        """Held while items are handed over or become used, so that none is used before its time."""
        self._version = version
        self._seen_version = version.get_version()
        self._told_version = -1
        """The newest that the host has told."""
        slots = getattr(manager, "max_concurrent_rollouts", settings.max_concurrent_rollouts)
        self.gate = EpisodeGate(manager, version, self._note_version, slots)
        self._sampling = Sampling(engine, checks_format=settings.check_trajectory_format)
        self._dump = _open_dump(settings, engine)
        self.runner = Runner(name="rollout", inbox=_NO_LIMIT, gates=[self.gate])
        self.batches = BatchCollector(
            self.runner, self.deliveries.are_for(self), self.deliveries.hand_over
        )
        self.set_dynamic(dynamic=False)
        self.runner.set_version(self._seen_version)
        self._tell_bound()
        self.runner.start()

    def close(self) -> CloseReport:
        """End everything, and say what was not finished."""
        runner = self.runner
        self.is_over = True
        with runner._kernel.lock:
            unfinished = self.deliveries.missing(runner._kernel.outbox.__contains__)
        # Before the end makes outcomes of what it cancels: nobody waits for those.
        runner._let_waiters_go()
        report = runner.close()
        if self._dump is not None:
            self._dump.close()
        tracing.flush()
        return replace(report, unfinished=unfinished)

    # --- versions and counters -------------------------------------------------------------------

    def set_version(self, version: int) -> None:
        """Tell that the weights were updated: what was handed over is used, and more may start."""
        with self._using:
            self._told_version = max(self._told_version, version)
        self.ack()
        self._enter_version(version)

    def _enter_version(self, version: int) -> None:
        self.runner.set_version(version)
        self._tell_bound()

    def _tell_bound(self) -> None:
        """Record how old items may get; with each version, since recording may begin later."""
        bound = getattr(self.manager, "max_staleness", self._settings.max_staleness)
        tracing.gauge(_BOUND_GAUGE, bound)

    def _note_version(self, version: int) -> None:
        """Take over a version that the engine has and nobody has told us; it may lag behind us."""
        with self._using:
            if version != self._seen_version:
                self._seen_version = version
                if version > self._told_version:  # else what it has used was noted when told
                    self.ack()
                self._enter_version(version)

    def set_dynamic(self, *, dynamic: bool) -> None:
        """Say whether batches count rejected items."""
        tell = getattr(self.manager, "set_dynamic", None)
        if tell is not None and dynamic != self._is_dynamic:
            tell(dynamic)
        self._is_dynamic = dynamic

    def stats_text(self) -> str:
        """Say how many items are where."""
        stat = self.manager.get_stats()
        return (
            f"enqueued: {stat.enqueued}, running: {stat.running}, "
            f"accepted: {stat.accepted}, rejected: {stat.rejected}."
        )

    # --- in --------------------------------------------------------------------------------------

    def submit(self, episode: Episode, task_id: int | None = None) -> int:
        """Have an item run; gives its id, which is counted up if none is given."""
        with self._lock:
            if self.gate.queued(is_eval=episode.is_eval) >= self._settings.queue_size:
                raise InboxFull(
                    f"{self._settings.queue_size} items wait already; fetch outcomes first, "
                    "or make queue_size larger"
                )
            episode.task_id = self._next_id if task_id is None else task_id
            self.deliveries.check(episode.task_id)
            options = TaskOptions(key=episode.key, tier="eval" if episode.is_eval else "train")
            group = EpisodeGroup(self.runner, options, episode, self._sampling, self._settled)
            self.deliveries.add(group.id, episode)
            try:
                group.start()
            except BaseException:
                self.deliveries.forget(group.id)
                raise
            if isinstance(episode.task_id, Integral):  # AReaL takes names of any kind
                self._next_id = max(self._next_id, int(episode.task_id) + 1)
        self.gate.enter(episode)
        self._tell("submitted", episode)
        return episode.task_id

    def submit_when_room(self, episode: Episode) -> int:
        """Have an item run, once there is room for it in the queue.

        Raises:
            GateBlocked: There will be none at this version.
        """
        while True:
            try:
                return self.submit(episode)
            except InboxFull:
                if not self.gate.wait_for_room(self._settings.queue_size, BLOCKED_S):
                    self._check_blocked()

    def feed(self, cursor: LoaderCursor, recipe: Recipe) -> None:
        """Keep as many inputs queued as may start before the next look, and one under way."""
        limit = min(max(1, self.manager.get_pending_limit()), self._settings.queue_size)
        while True:
            while self.gate.queued() < limit:
                position, item = cursor.draw()
                drawn = Drawn(cursor, position)
                try:
                    self.submit(recipe.episode(item, owner=self, drawn=drawn))
                except InboxFull:  # somebody else has taken the room meanwhile
                    cursor.put_back(position, item)
                    break
            if self.deliveries.has_any(self):
                return
            # Others fill the queue. Nothing of ours will end, so nothing else would bring us back.
            self.gate.wait_for_room(limit, BLOCKED_S)

    def _settled(self, episode: Episode, outcome: GroupOutcome) -> None:
        """Count an item that has ended, and tell the trace; on the runner's loop."""
        self.gate.end(episode, accepted=outcome.is_ok)
        if self._dump is not None and outcome.value is not None:
            self._dump.put(episode.task_id, outcome.value, accepted=outcome.is_ok)
        self._trace(outcome)
        self._tell(f"{outcome.status} ({outcome.reason})", episode)

    def _trace(self, outcome: GroupOutcome) -> None:
        stat = self.manager.get_stats()
        stats = {name: getattr(stat, name) for name in _COUNTED}
        for member in outcome.members:
            if member.span is not None:
                member.span.set(rollout_stats=stats)
                if member.is_ok and not outcome.is_ok:  # good by itself, but not what it is part of
                    member.span.finish("rejected", reason=str(outcome.reason))

    def _tell(self, what: str, episode: Episode) -> None:
        if self._settings.enable_rollout_tracing:
            self._logger.info("task %s %s; %s", episode.task_id, what, self.stats_text())

    def leave_to_anybody(self, owner: object) -> None:
        """Let anybody have what was for a call that has failed, those in line first."""
        self.deliveries.leave_to_anybody(owner)
        kernel = self.runner._kernel
        with kernel.lock:
            served = kernel.outbox.serve()
        for one in served:
            one.notify()

    # --- out -------------------------------------------------------------------------------------

    def wait_unless_blocked(self, count: int, owner: object, order: Order) -> list[Outcome]:
        """Wait for all outcomes of one call; none is taken before all are there.

        Raises:
            GateBlocked: They will not come: nothing runs, and nothing may start at this version.
        """
        while True:
            try:
                return self.runner.wait(count, BLOCKED_S, order, self.deliveries.are_for(owner))
            except WaitTimeout:
                self._check_blocked()

    def _check_blocked(self) -> None:
        runner = self.runner
        ledger = runner.ledger()
        is_held = ledger.queued and runner.stats().binding_gate == self.gate.name
        if is_held and not ledger.running and runner.health().since_progress_s >= BLOCKED_S:
            raise GateBlocked(
                f"nothing has run for {BLOCKED_S:g} s, and no item may start at this version: "
                f"{runner._kernel.admission.explain()}"
            )

    def consume(self, settled: list[Settled]) -> list[Settled]:
        """Report to the counters what is handed over for training."""
        trained = [one for one in settled if not one.episode.is_eval]
        accepted = sum(one.outcome.is_ok for one in trained)
        report = getattr(self.manager, "batch_taken", None)
        with self._using:
            self._note_version(self._version.get_version())
            if report is not None and trained:
                report(accepted, len(trained) - accepted)
            got = unused(trained, tracing.current().scope.step)
            if not accepted:  # nobody trains on a batch without any accepted
                self._use(got)
            elif self.deliveries.keep_unused(got):
                self.ack()
        return settled

    def ack(self) -> None:
        """Note that everything handed over so far was used."""
        self._use(self.deliveries.take_unused())

    def _use(self, used: list[Unused]) -> None:
        for step, spans, drawn in used:
            for span in spans:
                charged = self.runner.version if step is None else step
                tracing.annotate(span, consumed_step=charged)
            if drawn is not None:
                drawn.cursor.mark_used((drawn.position,))


def _open_dump(settings: ExecutorSettings, engine: Engine) -> DumpWriter | None:
    wanted, path = settings.dump_to_file, settings.tokenizer_path
    if not wanted:
        return None
    tokenizer = getattr(engine, "tokenizer", None) if path is None else load_tokenizer(path)
    return DumpWriter("rollouts" if wanted is True else wanted, tokenizer)
