"""Writing the spans and instants of Chrome traces, each once, whatever files hold it."""

from rollscope.importing.chrome_events import ChromeEvent
from rollscope.importing.chrome_flows import Flows
from rollscope.importing.chrome_own import facts_of_session, own_row
from rollscope.importing.chrome_rows import make_row
from rollscope.importing.chrome_tracks import Track
from rollscope.importing.chrome_writers import Writer
from rollscope.importing.formats import Place
from rollscope.importing.values import derived_id
from rollscope.otlp.rows import Row

__all__ = ["DUPLICATE", "ChromeSpans"]

DUPLICATE = "duplicate"


class ChromeSpans:
    """Knows the ids of all that was written; they are what grows with a trace."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._file_number = -1
        self._before: set[int] = set()
        """What earlier files have."""
        self._here: set[int] = set()
        self._copies: dict[int, int] = {}

    def enter(self, file_number: int) -> None:
        """Say which file comes next, if it is another one."""
        if file_number != self._file_number:
            self._file_number = file_number
            self._before |= self._here
            self._here, self._copies = set(), {}

    def new_id(self, content_id: int) -> int:
        """Give an id to a beginning, of which many may say the same; 0 to one of another file."""
        if content_id in self._before:
            return 0
        copy = self._copies.get(content_id, 0)
        if content_id in self._here:
            copy = self._copies[content_id] = copy + 1
        self._here.add(content_id)
        return derived_id(content_id, copy) if copy else content_id

    def write(
        self,
        place: Place,
        track: Track,
        event: ChromeEvent,
        end_ns: int | None,
        *,
        parent_id: int = 0,
        span_id: int = 0,
    ) -> str:
        """Write one.

        Args:
            place: Where it stands in its file.
            track: Where it is drawn.
            event: What tells of it.
            end_ns: When it ended; None if it did not.
            parent_id: What it is part of, if that is known.
            span_id: Its id, if it has got one.

        Returns:
            Empty, or `duplicate`.
        """
        row = own_row(track, event, end_ns) if track.file.writer == Writer.ROLLSCOPE else None
        if row is not None:
            return self._write_own(track, event, row, is_pair=bool(span_id))
        made = make_row(track, event, end_ns, parent_id=parent_id)
        row = made.row
        if span_id:
            row = row._replace(span_id=span_id)
        else:
            if made.content_id in self._here or made.content_id in self._before:
                return DUPLICATE
            self._here.add(made.content_id)
            if row.span_id != made.content_id:
                # A task of Ray has an id that its parts know; a second one of it must not.
                if row.span_id in self._here:
                    row = row._replace(span_id=made.content_id)
                self._here.add(row.span_id)
        track.domain.add(row)
        self._flows.bind((place.file_number, event.pid, event.tid), track, row)
        return ""

    def _write_own(self, track: Track, event: ChromeEvent, row: Row, *, is_pair: bool) -> str:
        if row.span_id in self._here or row.span_id in self._before:
            return "" if is_pair else DUPLICATE
        self._here.add(row.span_id)
        track.domain.add(row)
        at_ns, facts = facts_of_session(row, event.args)
        if facts:
            shift = track.domain.shift_ns
            at_ns = at_ns - shift if at_ns else max(row.start_ns, row.end_ns)
            track.domain.fact(row.scope[0], row.span_id, at_ns, facts)
        return ""
