"""The timeline of a run with everything that can be asked of it."""

from collections.abc import Sequence

from rollscope.timeline.area import Area, sum_area
from rollscope.timeline.framing import delta_frame, whole_frame
from rollscope.timeline.lookup import ExactSpan, find_span
from rollscope.timeline.overview import Overview, Silhouette, overview, silhouettes
from rollscope.timeline.spanindex import SpanIndex
from rollscope.timeline.tiles import TileQuery, tile_frame

__all__ = ["TimelineIndex"]


class TimelineIndex(SpanIndex):
    """All spans of a run in their lanes and rows; safe to use from several threads."""

    def frame(self, mode: str = "raw", *, tick_ns: int | None = None) -> bytes:
        """Give every span of the run as a view frame.

        Args:
            mode: `raw` for columns as they are, `packed` for few bytes.
            tick_ns: A coarser tick than the one that is needed.
        """
        return whole_frame(self, mode, tick_ns=tick_ns)

    def delta(self, since: int) -> bytes:
        """Give what changed since the `seq` of an earlier frame, as a view frame.

        Raises:
            DeltaTooOld: That is not known any more; the page has to load anew.
        """
        return delta_frame(self, since)

    def tile(self, query: TileQuery, *, overview: int = 0, silhouettes: bool = False) -> bytes:
        """Give what a window shows, as a view frame.

        Args:
            query: The window.
            overview: Pixels of the picture of the whole run that comes along; 0 for none.
            silhouettes: Whether those of the groups in view come along.
        """
        return tile_frame(self, query, overview_width=overview, with_groups=silhouettes)

    def overview(self, width: int) -> Overview:
        """Give how much was in flight over the whole run, by role."""
        return overview(self, width)

    def silhouettes(
        self, groups: Sequence[int], t0_ns: int, t1_ns: int, width: int
    ) -> list[Silhouette]:
        """Give how much each group had in flight; groups are positions."""
        return silhouettes(self, groups, t0_ns, t1_ns, width)

    def area(self, t0_ns: int, t1_ns: int, first: int, lanes: int) -> Area:
        """Add up the spans that touch a window on some lanes."""
        return sum_area(self, t0_ns, t1_ns, first, lanes)

    def span(self, lane: int, row: int, start_ns: int) -> ExactSpan:
        """Give the exact span of a lane and row that begins nearest to a time.

        Raises:
            QueryError: There is none on that row.
        """
        return find_span(self, lane, row, start_ns)
