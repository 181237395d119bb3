"""How long sessions waited until a step consumed them, and how far behind they were by then."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.analysis.roles import PUBLISHED_EVENT
from rollscope.exposing.catalogue import AGE_BOUNDS
from rollscope.exposing.columns import NOTHING, Numbers, numbers, times
from rollscope.exposing.histograms import LENGTHS, Histograms
from rollscope.exposing.pairing import Pairing, Rows
from rollscope.store.corrections import Corrections

__all__ = ["Consumption"]

_AGES: Final = tuple(int(bound) for bound in AGE_BOUNDS)


class Consumption:
    """Sessions and the first step that consumed each."""

    def __init__(self) -> None:
        self.waits = Histograms[str](LENGTHS)
        self.ages = Histograms[str](_AGES)
        self._waiting = Pairing()
        self._published: list[tuple[int, int]] = []
        """Times and versions, in order."""

    def copy(self) -> "Consumption":
        """Give it once more, to be added to apart."""
        copied = Consumption()
        copied.waits, copied.ages = self.waits.copy(), self.ages.copy()
        copied._waiting, copied._published = self._waiting.copy(), self._published
        return copied

    @property
    def count(self) -> int:
        """How many sessions have been consumed."""
        return sum(int(one.counts.sum()) for one in self.waits.by_key.values())

    def add_events(self, rows: pa.Table, corrections: Corrections) -> None:
        """Add events; all but published weights are passed over."""
        is_published = pc.equal(rows["name"].cast(pa.string()), PUBLISHED_EVENT)
        rows = rows.filter(pc.and_(is_published, rows["version"].is_valid()))
        if rows.num_rows:
            at = times(rows, "time_ns", corrections).tolist()
            found = zip(at, numbers(rows, "version").tolist(), strict=True)
            self._published = sorted([*self._published, *found])

    def add(self, ended: pa.Table, used: Rows, corrections: Corrections) -> None:
        """Add sessions and consumptions.

        Args:
            ended: Sessions that have ended.
            used: When sessions were consumed, by id.
            corrections: How the times of processes are moved.
        """
        ends, versions = times(ended, "end_ns", corrections), numbers(ended, "version_start")
        sessions = Rows.first_of(ended["span_id"].to_numpy(), ends, versions)
        pairs, sessions, used = self._waiting.match(sessions, used)
        self._waiting.keep(sessions, used)
        end_ns, version, at_ns = pairs
        self.waits.add_one("", np.maximum(at_ns - end_ns, 0))
        is_known = version != NOTHING
        if self._published:
            self.ages.add_one("", self._lags(version[is_known], at_ns[is_known]))

    def _lags(self, versions: Numbers, at_ns: Numbers) -> Numbers:
        """Say how far behind versions were, as `analysis.staleness.Versions.lag` does."""
        out_ns, published = (np.array(column) for column in zip(*self._published, strict=True))
        newest = np.maximum.accumulate(published)
        places = np.searchsorted(out_ns, at_ns, side="right") - 1
        lags = np.where(places >= 0, newest[np.maximum(places, 0)] - versions, 0)
        behind: Numbers = np.maximum(lags, 0)
        return behind
