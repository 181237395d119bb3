"""One run as monitoring systems see it: everything that it stands at, at one moment."""

from collections import Counter
from typing import Final

from rollscope.answers.moment import Moment, moment_of
from rollscope.answers.sharing import sharing
from rollscope.exposing import catalogue as ours
from rollscope.exposing.current import (
    Judged,
    LastStep,
    Member,
    find_members,
    lag_by_member,
    last_bound,
    targets_up,
    tokens_per_s,
)
from rollscope.exposing.holding import Held
from rollscope.exposing.labels import Caps
from rollscope.exposing.points import Pointer
from rollscope.exposing.samples import Samples
from rollscope.exposing.sums import Sums
from rollscope.exposing.tally import Tally
from rollscope.exposing.usermetrics import Teller, UserMetrics
from rollscope.metrics.families import Exposed
from rollscope.model.serverroles import SERVER_ROLES
from rollscope.store.embedded import RunStore

__all__ = ["RunExposition", "expose_run", "run_state"]

_SECOND: Final = 1e9
_CLOSED: Final = frozenset({"ended", "imported"})
_OVER: Final = _CLOSED | {"dead"}
_MOST_PHASES: Final = 200
"""That are remembered, to be shown with nobody in them."""


def expose_run(store: RunStore) -> list[Exposed]:
    """Give what a run stands at, once; whoever looks again and again keeps a `RunExposition`."""
    return RunExposition(store.path.resolve().name).look(store)


class RunExposition:
    """What is kept of a run between two looks; used by the thread that owns its store."""

    def __init__(self, run: str) -> None:
        self._tally = Tally()
        self._held = Held()
        self._caps = Caps()
        self._pointer = Pointer(run, self._caps)
        self._user = UserMetrics(run, self._caps)
        self._judged = Judged()
        self._last_step = LastStep()
        self._phases: dict[str, None] = {}

    def catch_up(self, store: RunStore) -> bool:
        """Take in some of what was never read; say whether there is more.

        So that others who ask the same thread need not wait for all of it.

        Raises:
            StoreError: Files of the run are damaged or gone.
        """
        return self._tally.catch_up(store)

    def look(self, store: RunStore) -> list[Exposed]:
        """Give what the run stands at now.

        Raises:
            StoreError: Files of the run are damaged or gone.
        """
        with sharing():
            return self._held.hold(self._look(store))

    def _look(self, store: RunStore) -> list[Exposed]:
        self._caps.begin()
        sums, samples = self._tally.look(store)
        moment = moment_of(store)
        members = [one for one in find_members(store) if one.role not in SERVER_ROLES]
        flight = self._judged.look(store, moment)
        if len(self._phases) < _MOST_PHASES:
            self._phases |= dict.fromkeys(flight.phases)
        self._last_step.look(store, sums)
        tellers = {one.process: _teller(one) for one in members}
        user = self._user.look(samples, tellers, store.now_ns)
        exposed = [
            *self._pointer.sums(sums),
            *self._pointer.flight(flight, self._phases),
            *self._pointer.last_step(self._last_step),
            *self._moment(store, sums, samples, members, moment),
        ]
        refused = {"label": self._user.refused_labels, "label_values": self._caps.refused_total}
        refused = {reason: count for reason, count in refused.items() if count}
        return [*exposed, *self._pointer.drops(_drops(store), refused), *user]

    def _moment(
        self,
        store: RunStore,
        sums: Sums,
        samples: Samples,
        members: list[Member],
        moment: Moment,
    ) -> list[Exposed]:
        point = self._pointer
        last_ns = max((one.last_seen_ns for one in members), default=moment.last_ns)
        age_s = max(store.now_ns - last_ns, 0) / _SECOND
        version = max((one.version for one in members if one.version), default="")
        return [
            point.maybe(ours.STALENESS_BOUND, last_bound(samples)),
            point.maybe(ours.TOKENS_PER_SECOND, tokens_per_s(store, sums, moment)),
            point.lags(lag_by_member(store, members, moment)),
            point.members(members),
            point.count(ours.RECORD_AGE, {(): age_s}),
            point.targets(targets_up(samples, moment.now_ns)),
            point.count(ours.RUN, {(version, run_state(members)): 1}),
        ]


def run_state(members: list[Member]) -> str:
    """Say whether a run is `live`, `ended`, or `lost`: nobody writes, and not all said goodbye."""
    statuses = {one.status for one in members}
    if statuses <= _CLOSED:
        return "ended"
    return "lost" if statuses <= _OVER else "live"


def _teller(member: Member) -> Teller:
    is_alive = member.status not in _OVER
    return Teller(member.role, member.rank_label, is_alive, member.last_seen_ns)


def _drops(store: RunStore) -> Counter[str]:
    drops: Counter[str] = Counter()
    for ledger in store.sealer.intake.ledgers.values():
        drops.update(ledger.state.drops)
    return drops
