"""One target over time: whether it is up, what it showed, and when it is asked again."""

import time
from typing import Final

from rollscope.collect.asking import Asker, TargetTrouble
from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.exposition import Exposition, ExpositionReader
from rollscope.collect.increments import MOST_METRICS, Increments, Reading
from rollscope.collect.targets import Target
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType

__all__ = ["UP", "Watch"]

UP: Final = "rollscope.engine.up"
"""1 while a target answers, 0 while it does not."""
_TIMEOUT_SHARE: Final = 0.8
_MOST_TIMEOUT_S: Final = 10.0
_LONGEST_WAIT_S: Final = 10.0
_CUT_WAIT_S: Final = 60.0
"""Reading as much as there may be takes a moment of the loop that answers the page."""


class Watch:
    """What is known of a target; for the event loop."""

    def __init__(self, target: Target, choice: SeriesChoice, every_s: float) -> None:
        """Know nothing yet.

        Args:
            target: Who is asked.
            choice: What is kept.
            every_s: How often it is asked.
        """
        self.target = target
        self.is_up: bool | None = None
        self.trouble = ""
        self.news = ""
        """What changed with the last answer, to be told once."""
        self.asked_ns = 0
        self.series = 0
        """Metrics that the last answer gave."""
        self.bad_lines = 0
        self.wait_s = every_s
        """Until it is asked again."""
        self._every_s = every_s
        self._choice = choice
        self._asker = Asker(target.address)
        self._increments = Increments(choice, target.labels_for)
        self._run: str | None = None
        self._failures = 0
        self._reading: Reading | None = None

    async def ask(self, run: str) -> list[Metric]:
        """Ask for what goes into a run; a target that is down gives just that."""
        if run != self._run:
            self._increments.forget()
            self._run = run
        self.asked_ns = time.time_ns()
        self._reading = None
        reader = ExpositionReader(self._choice.wants)
        timeout_s = min(self._every_s * _TIMEOUT_SHARE, _MOST_TIMEOUT_S)
        try:
            await self._asker.ask(reader.feed, timeout_s)
        except TargetTrouble as error:
            self._failures += 1
            self.wait_s = min(self._every_s * 2 ** min(self._failures, 10), self._longest_wait_s)
            self._note(is_up=False, trouble=str(error))
            return [self._up(0.0)]
        self._failures = 0
        return self._read(reader.close())

    def accept(self) -> None:
        """Count from the last answer on: it has been written."""
        if self._reading is not None:
            self._increments.accept(self._reading)

    def pause(self) -> None:
        """Ask nothing for now, as no run is being recorded."""
        self._increments.forget()
        self._run = None
        self.wait_s = self._every_s

    def close(self) -> None:
        """Hang up."""
        self._asker.close()

    @property
    def _longest_wait_s(self) -> float:
        return max(_LONGEST_WAIT_S, self._every_s)

    def _read(self, exposition: Exposition) -> list[Metric]:
        self._reading = self._increments.read(exposition)
        self.series, self.bad_lines = len(self._reading.metrics), exposition.bad_lines
        self.wait_s = _CUT_WAIT_S if exposition.is_cut else self._every_s
        self._note(is_up=True, trouble=_trouble_with(exposition, self._reading))
        return [self._up(1.0), *self._reading.metrics]

    def _up(self, value: float) -> Metric:
        return Metric(MetricType.GAUGE, UP, self.target.labels_for({}), value, 1)

    def _note(self, *, is_up: bool, trouble: str) -> None:
        self.news = ""
        if (is_up, trouble) != (self.is_up, self.trouble):
            url = self.target.address.url
            if trouble:
                self.news = f"{url} {trouble}"
            elif self.is_up is not None:
                self.news = f"{url} answers again"
        self.is_up, self.trouble = is_up, trouble


def _trouble_with(exposition: Exposition, reading: Reading) -> str:
    if exposition.is_cut:
        return "exposes more than is read; the rest is left out"
    if reading.left_out:
        return f"has more than {MOST_METRICS} series to keep; the rest is left out"
    if not exposition.points:
        return "exposes nothing that is kept here"
    return ""
