"""What an index has learnt since it was built: what is open, what has ended, where it stands.

Whatever has a place keeps it. What has ended is kept as columns; only what may still change is
known one by one.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.building import Layout
from rollscope.timeline.columns import STUCK, Part, Rows
from rollscope.timeline.merging import merge_parts
from rollscope.timeline.rooms import Rooms

__all__ = ["CannotFollow", "Growth", "News", "Placed", "rows_of"]


class CannotFollow(Exception):
    """What came cannot be added to what is placed; everything has to be placed anew."""


class Placed(msgspec.Struct):
    """A span that was open when it came."""

    start: int
    end: int
    session: int
    name: int
    flags: int
    lane: int
    row: int
    handle: int
    """What names it."""


class News(msgspec.Struct):
    """Spans that have no row yet."""

    ids: npt.NDArray[np.uint64]
    rows: Rows
    """Their rows are filled in when they are placed."""
    depth: npt.NDArray[np.uint8]
    is_final: npt.NDArray[np.bool_]
    """Which of them have ended for good."""


class Growth:
    """Places what is new, and keeps it until it is merged into what was sorted at the build."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.open: dict[int, Placed] = {}
        """Span id to what is known of it, for spans whose end may still come."""
        self.recent = Part(Rows.none())
        """What has ended since the last merge."""
        self._rooms = Rooms(layout.part, layout.depths)
        self._ending: list[Placed] = []
        self._handles = 0
        self._adopt(layout)

    def _adopt(self, layout: Layout) -> None:
        """Take over what was open at the build, where the build has put it."""
        rows = layout.open_rows
        for lane, row, depth in zip(
            rows.lane.tolist(), rows.row.tolist(), layout.open_depths.tolist(), strict=True
        ):
            self._rooms.adopt_row(lane, row, depth)
        self._hold(layout.open_ids, rows)

    def __len__(self) -> int:
        return len(self.open) + len(self.recent)

    def place(self, news: News) -> tuple[Rows, list[Placed]]:
        """Give spans their rows; gives those that came with their end, and the others."""
        rows, is_final = news.rows, news.is_final
        rows.row = self._rooms.place(rows.lane, news.depth, rows.start, rows.end, is_final)
        opened = self._hold(news.ids[~is_final], rows.take(~is_final))
        settled = rows.take(is_final)
        self._settle(Rows.join([settled, rows_of(self._ending)]))
        for span in self._ending:
            self._rooms.let_go(span.lane, span.row, span.start, span.end)
        self._ending.clear()
        return settled, opened

    def _hold(self, ids: npt.NDArray[np.uint64], rows: Rows) -> list[Placed]:
        columns = [getattr(rows, field).tolist() for field in Rows.__struct_fields__]
        held = []
        for span_id, *values in zip(ids.tolist(), *columns, strict=True):
            self._handles += 1
            span = self.open[span_id] = Placed(*(*values, self._handles))
            self._rooms.hold(span.lane, span.row, span.start, span.end)
            held.append(span)
        return held

    def end(self, span_id: int, end: int, flags: int) -> Placed:
        """Let an open span end for good; from the next call of `place` on it is with the ended."""
        span = self.open.pop(span_id)
        self.change(span, end, flags)
        self._ending.append(span)
        return span

    def change(self, span: Placed, end: int, flags: int) -> None:
        """Note what is known of a span now.

        Raises:
            CannotFollow: It lasted longer than was thought, and its place has been taken.
        """
        where = span.lane, span.row
        if end > span.end and not self._rooms.can_grow(*where, (span.start, span.end), end):
            raise CannotFollow
        if end != span.end:
            self._rooms.change(*where, span.start, end)
        span.end, span.flags = end, flags

    def mark_stuck(self, ids: Iterable[int]) -> list[Placed]:
        """Set the flag on these and clear it on all others; give those that changed."""
        wanted = set(ids)
        changed = []
        for span_id, span in self.open.items():
            flags = span.flags & ~STUCK | (STUCK if span_id in wanted else 0)
            if flags != span.flags:
                span.flags = flags
                changed.append(span)
        return changed

    def _settle(self, rows: Rows) -> None:
        """Keep spans that have ended and have a place."""
        if not len(rows):
            return
        # No two spans of a line begin together unless one has no length; that one comes first.
        rows = rows.take(np.lexsort((rows.end, rows.start)))
        codes = rows.lane.astype(np.int64) << 16 | rows.row
        order = np.argsort(codes, kind="stable")
        self.recent = merge_parts(self.recent, Part(rows.take(order), codes[order]))
        self._rooms.parts = self._layout.part, self.recent

    def merge(self) -> None:
        """Put what has ended into what was sorted at the build."""
        part = merge_parts(self._layout.part, self.recent)
        self._layout.depths = self.depths_in(part)
        self._layout.part = part
        self.recent = Part(Rows.none())
        self._rooms.parts = (part,)

    def depths_in(self, part: Part) -> npt.NDArray[np.uint8]:
        """Say how deep the spans of each line of a part are."""
        return self._rooms.depths_in(part)


def rows_of(spans: Sequence[Placed]) -> Rows:
    """Give spans as columns."""
    none = Rows.none()
    return Rows(
        *(
            np.array([getattr(span, field) for span in spans], getattr(none, field).dtype)
            for field in Rows.__struct_fields__
        )
    )
