"""What happened between two times."""

from collections.abc import Sequence

from rollscope.analysis.rows import SpanRow
from rollscope.answers.rows import most_moved, span_rows
from rollscope.answers.source import Source
from rollscope.store.dialect import Value

__all__ = ["spans_between"]


def spans_between(
    source: Source, low_ns: int, high_ns: int, session_ids: Sequence[int] | None = None
) -> list[SpanRow]:
    """Give the spans that were open at some time between two times.

    Args:
        source: The run.
        low_ns: From here.
        high_ns: To here, this moment not included.
        session_ids: Of these sessions only.
    """
    slack_ns = most_moved(source)
    # The recorded times say nearly the same and stand in the files, so that most is skipped.
    where = """
        recorded_start_ns < $files_high
        AND (recorded_end_ns > $files_low OR recorded_end_ns IS NULL)
        AND start_ns < $high AND (end_ns > $low OR end_ns IS NULL)"""
    values: dict[str, Value] = {
        "low": low_ns,
        "high": high_ns,
        "files_low": low_ns - slack_ns,
        "files_high": high_ns + slack_ns,
    }
    if session_ids is not None:
        where += f" AND {source.dialect.is_in('session_id', '$ids')}"
        values["ids"] = list(session_ids)
    return span_rows(source, where, **values)
