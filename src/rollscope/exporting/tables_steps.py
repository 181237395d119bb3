"""Steps as a table: the same numbers that the list of steps shows."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from rollscope.analysis.rows import StepFacts
from rollscope.analysis.sync import sync_split
from rollscope.analysis.trainer import trainer_split
from rollscope.answers.facts import gather_steps
from rollscope.answers.scope import known_steps
from rollscope.exporting.picking import Steps
from rollscope.exporting.scratch import Scratch
from rollscope.model.kinds import Outcome
from rollscope.store.embedded import RunStore

__all__ = ["make_steps"]

_AT_ONCE: Final = 10
"""Steps whose sessions are in memory together."""
_STEPS: Final = pa.schema(
    [
        ("step", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("sessions", pa.int64()),
        ("accepted", pa.int64()),
        ("wait_s", pa.float64()),
        ("train_s", pa.float64()),
        ("sync_s", pa.float64()),
    ]
)


def make_steps(scratch: Scratch, store: RunStore, steps: Steps | None) -> None:
    """Make the table `export.steps`."""
    scratch.run("""
        CREATE TABLE export.steps (step BIGINT, start_ns BIGINT, end_ns BIGINT, sessions BIGINT,
            accepted BIGINT, wait_s DOUBLE, train_s DOUBLE, sync_s DOUBLE)""")
    for gathered in _gathered(store, steps):
        rows = [_row(facts) for facts in gathered]
        if rows:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*rows, strict=True), _STEPS, strict=True)
            ]
            scratch.add("steps", pa.RecordBatch.from_arrays(columns, schema=_STEPS))


def _gathered(store: RunStore, steps: Steps | None) -> Iterator[list[StepFacts]]:
    numbers = [
        number for number in known_steps(store) if steps is None or steps[0] <= number <= steps[1]
    ]
    for at in range(0, len(numbers), _AT_ONCE):
        some = numbers[at : at + _AT_ONCE]
        yield gather_steps(store, some[0], some[-1], is_light=True)[0]


def _row(facts: StepFacts) -> tuple[int | float | None, ...]:
    trainer = trainer_split(facts)
    accepted = sum(one.outcome == Outcome.ACCEPTED for one in facts.sessions)
    return (
        facts.span.step,
        facts.span.start_ns,
        facts.span.end_ns,
        len(facts.sessions),
        accepted,
        trainer.waiting_ns / 1e9,
        trainer.train_ns / 1e9,
        sync_split(facts).total_ns / 1e9,
    )
