"""The clocks of a run: what readings and the order of records together say of each process.

The receiver's clock is the run's, where there is one; else that of the trainer's host. A process
whose clock was read is moved along what was read. One that was not shares the readings of another
process of its host, for a host has one clock. Where the order of records shows that this is still
off, the host is moved a little further, no more than the readings' error allows. Hosts without
readings are moved by what the order of records says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from rollscope.model.batch import ProcessHeader
from rollscope.model.clockline import ClockMap
from rollscope.store.clocklinks import ClockLinks, remaining_bounds
from rollscope.store.clocks import ClockBounds, Offset, estimate_offsets
from rollscope.store.clocktracks import TOLERANCE_NS, Track
from rollscope.store.corrections import Correction, Corrections

__all__ = ["BY_ORDER", "BY_ROUND_TRIPS", "Account", "ProcessClock", "RunClocks", "estimate_clocks"]

BY_ROUND_TRIPS: Final = "round trips"
BY_ORDER: Final = "order of records"
_SHARED_NS: Final = TOLERANCE_NS
"""How much less is known of a process by another one's readings: both follow their host's clock
within so much."""
_MOST_KNOTS: Final = 128
"""Of all processes together, for every query pays for each of them."""
_LEAST_MOVE_NS: Final = 100_000
"""Clocks that are as good as this are left alone."""


class Account(Protocol):
    """What has to be known of a process."""

    process: int

    @property
    def header(self) -> ProcessHeader | None:
        """Who it is, once it has said so."""

    @property
    def clock(self) -> ClockMap:
        """Its clock lines."""

    @property
    def last_seen_ns(self) -> int:
        """When it was last heard of, by its own clock."""


class ProcessClock(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the clock of one process."""

    correction: Correction | None = None
    """How its times are moved; None if they are not."""
    error_ns: int | None = 0
    """How wrong that may be now; None if it is known on one side only."""
    drift_ppm: float = 0.0
    """How fast it goes wrong: greater than 0 if the clock is too slow."""
    readings: int = 0
    """How often it was read."""
    source: str = ""
    """How it became known."""

    def at(self, time_ns: int) -> int:
        """Give by how much a time is moved."""
        return 0 if self.correction is None else self.correction.at(time_ns)

    def undo(self, time_ns: int) -> int:
        """Give the time by the process's own clock."""
        return time_ns if self.correction is None else self.correction.undo(time_ns)


_RIGHT: Final = ProcessClock()


class RunClocks(msgspec.Struct):
    """The clocks of a run."""

    processes: dict[int, ProcessClock] = {}
    """Those of which anything is known."""
    read: dict[int, Correction] = {}
    """What readings alone say, before the order of records is looked at."""
    hosts: dict[str, Offset] = {}
    """What the order of records says of hosts, beyond what was read."""

    def of(self, process: int) -> ProcessClock:
        """Give what is known of a process."""
        return self.processes.get(process, _RIGHT)

    @property
    def corrections(self) -> Corrections:
        """How the times of processes are moved, for those that are."""
        return {
            process: clock.correction
            for process, clock in self.processes.items()
            if clock.correction is not None
        }


class _Read(msgspec.Struct):
    """The clock of a process as it was read."""

    account: Account
    track: Track
    correction: Correction
    error_ns: int

    @classmethod
    def of(cls, account: Account, track: Track, most: int) -> "_Read":
        wall_at = account.clock.wall_at
        points = [(wall_at(mono_ns), offset_ns) for mono_ns, offset_ns in track.points(most)]
        correction = Correction.through(points, track.line.rate)
        error_ns = track.error_after(account.last_seen_ns - wall_at(track.last_ns))
        return cls(account, track, correction, error_ns)

    def shared_with(self, other: Account, most: int) -> Correction:
        """Give what these readings say of another process of the host.

        Jumps of the host's clock are followed by processes that start later only, so both lines
        are compared with the host's clock. What was read before a jump is of no use after it.
        """
        line_for, wall_at = self.account.clock.line_for, self.account.clock.wall_at
        jumped_ns = self.account.clock.lines[-1].jumped_ns
        apart_ns = jumped_ns - (other.clock.lines[-1].jumped_ns if other.clock.lines else 0)
        points = [
            (wall_at(mono_ns) + apart_ns, offset_ns - apart_ns)
            for mono_ns, offset_ns in self.track.points(most)
            if line_for(mono_ns).jumped_ns == jumped_ns
        ]
        if not points:
            last_ns = self.account.last_seen_ns
            points = [(last_ns + apart_ns, self.correction.at(last_ns) - apart_ns)]
        return Correction.through(points, self.track.line.rate)


def estimate_clocks(
    accounts: Iterable[Account],
    tracks: Mapping[int, Track],
    receivers: Iterable[int],
    *,
    hosts: Sequence[str],
    bounds: ClockBounds,
    links: ClockLinks,
) -> RunClocks:
    """Say of every process how its times are to be moved.

    Args:
        accounts: All processes.
        tracks: What readings say, by process.
        receivers: The processes that took the readings.
        hosts: All hosts, the one whose clock counts without a receiver first.
        bounds: What the order of records says, by their recorded times.
        links: The same, as single records.
    """
    known = [account for account in accounts if account.header is not None]
    reference = _reference_hosts(known, receivers)
    read = _read_hosts(known, tracks, reference)
    if not reference:
        offsets = estimate_offsets(bounds, hosts)
    else:
        remaining = _remaining(read, reference, bounds, links)
        _limit_from_above(remaining, known, tracks, reference[0])
        others = [host for host in hosts if host != reference[0]]
        offsets = estimate_offsets(remaining, [reference[0], *others], _limits(read, reference))
    clocks = RunClocks(hosts=offsets)
    for account in known:
        process = account.process
        offset = offsets.get(_host(account))
        if process in read:
            clocks.read[process] = read[process].correction
            clocks.processes[process] = _as_read(read[process], offset, tracks.get(process))
        elif offset is not None and offset.offset_ns:
            correction = Correction.constant(offset.offset_ns)
            clocks.processes[process] = ProcessClock(
                correction=correction, error_ns=offset.error_ns, source=BY_ORDER
            )
    return clocks


def _reference_hosts(accounts: Iterable[Account], receivers: Iterable[int]) -> list[str]:
    """Give the hosts whose clock is the run's: those of receivers that have read others."""
    chosen = set(receivers)
    return list(dict.fromkeys(_host(one) for one in accounts if one.process in chosen))


def _read_hosts(
    accounts: Iterable[Account], tracks: Mapping[int, Track], reference: Sequence[str]
) -> dict[int, _Read]:
    """Give the clocks of all processes of hosts that were read, other than the receiver's."""
    by_host: dict[str, list[Account]] = {}
    for account in accounts:
        if _host(account) not in reference:
            by_host.setdefault(_host(account), []).append(account)
    most = _MOST_KNOTS // max(sum(map(len, by_host.values())), 1)
    found: dict[int, _Read] = {}
    for members in by_host.values():
        own = [
            _Read.of(account, tracks[account.process], most)
            for account in members
            if account.process in tracks and tracks[account.process].is_read and account.clock.lines
        ]
        if not own:
            continue
        best = min(own, key=lambda one: one.error_ns)
        by_process = {one.account.process: one for one in own}
        for account in members:
            mine = by_process.get(account.process)
            if mine is None or mine.error_ns > best.error_ns + _SHARED_NS:
                correction = best.shared_with(account, most)
                mine = _Read(account, best.track, correction, best.error_ns + _SHARED_NS)
            found[account.process] = mine
    return found


def _limits(read: Mapping[int, _Read], reference: Sequence[str]) -> dict[str, int]:
    """Say of hosts whose clocks were read how far the order of records may still move them."""
    limits = dict.fromkeys(reference[1:], TOLERANCE_NS)
    for one in read.values():
        host = _host(one.account)
        limits[host] = max(limits.get(host, 0), one.error_ns + TOLERANCE_NS)
    return limits


def _remaining(
    read: Mapping[int, _Read], reference: Sequence[str], bounds: ClockBounds, links: ClockLinks
) -> ClockBounds:
    """Say what the order of records adds to what was read."""
    apart = {_host(one.account) for one in read.values()} | set(reference[1:])
    # Of a pair of which neither was read, what was recorded says more: it knows of all links.
    remaining = {
        later: {before: least for before, least in befores.items() if before not in apart}
        for later, befores in bounds.items()
        if later not in apart
    }
    corrections = {process: one.correction for process, one in read.items()}
    for later, befores in remaining_bounds(links, corrections).items():
        for earlier, least in befores.items():
            remaining.setdefault(later, {}).setdefault(earlier, least)
    return remaining


def _limit_from_above(
    bounds: ClockBounds, accounts: Iterable[Account], tracks: Mapping[int, Track], reference: str
) -> None:
    """Add what single requests say: they came in after they were sent."""
    for account in accounts:
        track, host = tracks.get(account.process), _host(account)
        if track is not None and track.bound is not None and host != reference:
            least = bounds.setdefault(reference, {})
            least[host] = max(least.get(host, -track.bound.offset_ns), -track.bound.offset_ns)


def _host(account: Account) -> str:
    return account.header.host if account.header is not None else ""


def _as_read(read: _Read, offset: Offset | None, own: Track | None) -> ProcessClock:
    correction, account = read.correction, read.account
    if offset is not None:
        correction = correction.shifted(offset.offset_ns)
    started_ns = account.header.started_ns if account.header else account.last_seen_ns
    most_ns = correction.most(started_ns, max(account.last_seen_ns, started_ns))
    is_moved = most_ns > _LEAST_MOVE_NS
    return ProcessClock(
        correction=correction if is_moved else None,
        error_ns=read.error_ns,
        drift_ppm=round(read.track.line.rate * 1e6, 3),
        readings=0 if own is None else own.count,
        source=BY_ROUND_TRIPS,
    )
