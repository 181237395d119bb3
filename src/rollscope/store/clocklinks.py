"""Effects and causes on different hosts that are remembered, to check corrected clocks by.

How close an effect came to its cause depends on how their clocks are corrected, and that changes as
readings come in. So a few links of each pair of hosts are kept as they were recorded, the closest
of each part of the run, and are looked at anew whenever clocks are.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rollscope.store.clocks import ClockBounds, Links
from rollscope.store.corrections import Corrections, move_times

__all__ = ["ClockLinks", "Link", "keep_links", "remaining_bounds"]

_MOST: Final = 64
"""Links kept of one pair of hosts; the closest of each of half as many parts of the run."""


class Link(NamedTuple):
    """An effect and its cause, each by the clock of the process that recorded it."""

    later_ns: int
    later: int
    earlier_ns: int
    earlier: int
    slack_ns: int
    """How long after the cause the effect was, when it was found."""


ClockLinks = dict[str, dict[str, list[Link]]]
"""Later host to earlier host to the closest of their links."""


def keep_links(
    kept: ClockLinks, links: Links, host_of: Mapping[int, str], corrections: Corrections
) -> None:
    """Remember the closest of links that were found.

    Args:
        kept: Those known so far.
        links: What was found.
        host_of: The host of each process.
        corrections: How the times of processes are moved now.
    """
    later_ns = links.later_ns + move_times(links.later_ns, links.later, corrections)
    earlier_ns = links.earlier_ns + move_times(links.earlier_ns, links.earlier, corrections)
    slack = later_ns - earlier_ns
    both = np.stack((links.later, links.earlier))
    pairs, inverse = np.unique(both, axis=1, return_inverse=True)
    for number, (later, earlier) in enumerate(pairs.T.tolist()):
        after, before = host_of.get(later, ""), host_of.get(earlier, "")
        if not after or not before or after == before:
            continue
        rows = np.flatnonzero(inverse.reshape(-1) == number)
        closest = rows[np.argsort(slack[rows], kind="stable")[:_MOST]]
        found = {
            Link(
                int(links.later_ns[row]),
                later,
                int(links.earlier_ns[row]),
                earlier,
                int(slack[row]),
            )
            for row in closest.tolist()
        }
        known = kept.setdefault(after, {}).get(before, [])
        kept[after][before] = _thinned(_latest_look(known, found))


def _latest_look(known: list[Link], found: set[Link]) -> list[Link]:
    """Join both; a link that was found before is taken as it looks now."""
    by_times = {link[:4]: link for link in known} | {link[:4]: link for link in found}
    return sorted(by_times.values())


def _thinned(links: list[Link]) -> list[Link]:
    if len(links) <= _MOST:
        return links
    first_ns, last_ns = links[0].later_ns, links[-1].later_ns
    width = (last_ns - first_ns) // (_MOST // 2) + 1
    closest: dict[int, Link] = {}
    for link in links:
        part = (link.later_ns - first_ns) // width
        if part not in closest or link.slack_ns < closest[part].slack_ns:
            closest[part] = link
    return sorted(closest.values())


def remaining_bounds(kept: ClockLinks, corrections: Corrections) -> ClockBounds:
    """Give by how much hosts have still to be moved against each other, at least.

    Args:
        kept: The links to look at.
        corrections: How the times of processes are moved.
    """

    def moved(process: int, time_ns: int) -> int:
        correction = corrections.get(process)
        return time_ns if correction is None else time_ns + correction.at(time_ns)

    return {
        later: {
            earlier: max(
                moved(link.earlier, link.earlier_ns) - moved(link.later, link.later_ns)
                for link in links
            )
            for earlier, links in befores.items()
        }
        for later, befores in kept.items()
    }
