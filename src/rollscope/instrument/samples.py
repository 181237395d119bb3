"""Calls of metrics, folded by the writer: many calls in, few records out.

Each group of calls (see `callgroups`) is added to the tally of its series. A series is written when
it was last written a second ago or longer, and when a step begins or ends: so what is written
depends on the number of series, not on how often they are called. What cannot be added up is told
once and counted.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from rollscope.instrument.callgroups import are_sound, group_calls, read_numbers
from rollscope.instrument.calls import CALL, COUNT, GAUGE, NAME, STEP_BEGUN, VALUE
from rollscope.instrument.guard import guarded, tell_once
from rollscope.instrument.sanitise import clean_text, plain_number
from rollscope.instrument.serieslist import CallKey, Refusal, SeriesList, pack_labels
from rollscope.instrument.stepaside import step_aside
from rollscope.metrics.tally import Tally
from rollscope.model.batch import Metric

__all__ = ["Samples"]

_SLICE_CALLS: Final = 1_000
"""Half a millisecond of work: what an event loop may have to wait for the interpreter lock."""
_TAKE_CALLS: Final = 20_000
_RUSH_CALLS: Final = 50_000
"""With more than this waiting, the writer no longer steps aside between slices."""
_STEPS: Final = range(-(2**63), 2**63)
_NEVER_NS: Final = 2**63


class Samples:
    """What metrics did since they were last written."""

    def __init__(
        self, most_series: int, every_s: float, count_drop: Callable[[dict[str, int], str], None]
    ) -> None:
        """Begin empty.

        Args:
            most_series: How many series there may be.
            every_s: How often a series is written at most, but for steps.
            count_drop: Is told how many calls were refused, and why.
        """
        self._every_ns = int(every_s * 1e9)
        self._count_drop = count_drop
        self._series = SeriesList(most_series)
        self._touched: dict[Tally, None] = {}
        """Those that hold what no record does, in order of their first call."""
        self._ready: list[Metric] = []
        self._due_ns = _NEVER_NS
        """When the first of what was added up is to be written."""
        self._open_steps: dict[Any, int | None] = {}
        """Span id to number, in order of beginning."""
        self._step: int | None = None
        self._refused: Counter[Refusal] = Counter()
        self._amounts: defaultdict[Tally, list[float]] = defaultdict(list)

    def is_due(self, now_ns: int) -> bool:
        """Whether something was added up that is to be written now."""
        return now_ns >= self._due_ns

    def fold_waiting(self, waiting: list[Any], room_calls: int, now: Callable[[], int]) -> None:
        """Add up all that waits in a buffer; what is beyond the room, the oldest, is given up."""
        until = len(waiting)
        while until > 0:
            excess = len(waiting) - room_calls * CALL
            if excess > 0:
                self._give_up(_take(waiting, excess))
                until -= excess
            taken = _take(waiting, max(min(until, _TAKE_CALLS * CALL), 0))
            until -= len(taken)
            at_ns = now()
            for start in range(0, len(taken), _SLICE_CALLS * CALL):
                if start and len(waiting) < _RUSH_CALLS * CALL:
                    step_aside()
                self._fold_safely(taken, start, at_ns)
        for why, calls in self._refused.items():
            if calls:
                self._count_drop({"metric": calls}, str(why))
        self._refused.clear()

    def _fold_safely(self, taken: list[Any], start: int, at_ns: int) -> None:
        size = min(_SLICE_CALLS * CALL, len(taken) - start)
        try:
            self.fold(taken[start : start + size], at_ns)
        except Exception:
            self._amounts.clear()
            self._refused[Refusal.FAULT] += size // CALL
            with guarded("adding metrics up"):
                raise

    def fold(self, calls: list[Any], at_ns: int) -> None:
        """Add up calls, and cut where a step begins or ends.

        Args:
            calls: `CALL` entries each.
            at_ns: When they were taken, by the monotonic clock.
        """
        begin = 0
        for place in _marks(calls):
            # Before the mark: what came before a step is not to be taken for a part of it.
            self._add(calls[begin:place], calls[place + VALUE] - 1)
            self._turn(*calls[place : place + CALL])
            begin = place + CALL
        self._add(calls[begin:] if begin else calls, at_ns)

    def take(self, now_ns: int, *, is_all: bool = False) -> list[Metric]:
        """Give what is due: steps that are over, and series not written for a while.

        Args:
            now_ns: The monotonic clock.
            is_all: Whether everything is.
        """
        records, self._ready = self._ready, []
        next_ns = _NEVER_NS
        for tally in list(self._touched):
            due_ns = self._due_of(tally)
            if is_all or now_ns >= due_ns:
                tally.written_ns = now_ns
                del self._touched[tally]
                records.append(tally.take(self._step, tally.touched_ns))
            else:
                next_ns = min(next_ns, due_ns)
        self._due_ns = next_ns
        return records

    def _due_of(self, tally: Tally) -> int:
        return 0 if tally.written_ns is None else tally.written_ns + self._every_ns

    def _give_up(self, calls: list[Any]) -> None:
        marks = _marks(calls)
        for place in marks:
            self._turn(*calls[place : place + CALL])
        tell_once(
            "metric-overload",
            "Rollscope drops calls of metrics because they come faster than they can be added up; "
            "the run counts them",
        )
        self._refused[Refusal.OVERLOAD] += len(calls) // CALL - len(marks)

    def _turn(self, code: int, number: object, _: int, span_id: int) -> None:
        """Go on in another step: the one that began last of those that are open."""
        for tally in self._touched:
            self._ready.append(tally.take(self._step, tally.touched_ns))
            self._due_ns = 0
        self._touched.clear()
        if code == STEP_BEGUN:
            plain = plain_number(number)
            is_step = type(plain) is int and plain in _STEPS
            self._open_steps[span_id] = int(plain) if is_step else None  # type: ignore[arg-type]
        else:
            self._open_steps.pop(span_id, None)
        self._step = next(reversed(self._open_steps.values()), None)

    def _add(self, calls: list[Any], at_ns: int) -> None:
        if not calls:
            return
        values = calls[VALUE::CALL]
        # One look at all of them: hardly ever is there anything to refuse.
        is_sound = are_sound(values)
        if not is_sound:
            calls[VALUE::CALL] = read_numbers(calls[NAME::CALL], values)
        find, amounts = self._series.find, self._amounts
        mixed: list[Tally] = []
        for key, given in group_calls(calls).items():
            numbers = given if is_sound else self._check(key, given)
            if not numbers:
                continue
            tally, refusal = find(key)
            if refusal is not None:
                self._refused[refusal] += len(numbers)
            if tally is not None:
                if key[0] == GAUGE and tally in amounts:
                    mixed.append(tally)
                amounts[tally] += numbers
        for tally in mixed:
            self._put_last(tally, calls)
        for tally, numbers in amounts.items():
            tally.add(numbers, at_ns)
            self._touched[tally] = None
            self._due_ns = min(self._due_ns, self._due_of(tally))
        amounts.clear()

    def _put_last(self, tally: Tally, calls: list[Any]) -> None:
        """Put the last value of a gauge last, where its calls were written in several ways."""
        for place in range(len(calls) - CALL, -1, -CALL):
            code, name, value, labels = calls[place : place + CALL]
            key = code, name, pack_labels(labels)
            if value is not None and self._series.find(key).tally is tally:
                self._amounts[tally].remove(value)
                self._amounts[tally].append(value)
                return

    def _check(self, key: CallKey, values: list[Any]) -> list[float]:
        """Leave out what is no number, and what would spoil a sum for good."""
        code, name = key[:2]
        numbers = [value for value in values if value is not None]
        self._refused[Refusal.NO_NUMBER] += len(values) - len(numbers)
        if code == GAUGE:
            return numbers
        least = 0.0 if code == COUNT else -math.inf
        kept = [value for value in numbers if value >= least and math.isfinite(value)]
        if len(kept) < len(numbers):
            _tell_amount(code, name)
            self._refused[Refusal.AMOUNT] += len(numbers) - len(kept)
        return kept


def _take(items: list[Any], size: int) -> list[Any]:
    taken = items[:size]
    del items[: len(taken)]
    return taken


def _marks(calls: list[Any]) -> list[int]:
    """Give where steps begin or end."""
    codes = calls[::CALL]
    if max(codes, default=COUNT) < STEP_BEGUN:
        return []
    return [place * CALL for place, code in enumerate(codes) if code >= STEP_BEGUN]


def _tell_amount(code: int, name: str) -> None:
    shown = clean_text(name, 100)
    tell_once(
        f"metric-amount:{shown}",
        "Rollscope refuses to count a negative or infinite amount, or NaN, under %r; "
        "use a gauge for what falls"
        if code == COUNT
        else "Rollscope refuses to add infinity or NaN to the histogram %r",
        shown,
    )
