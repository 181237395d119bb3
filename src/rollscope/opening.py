"""The door from the package to its readers, which a training program never goes through."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rollscope.errors import MissingExtra, RollscopeError
from rollscope.instrument import default as tracing
from rollscope.instrument.guard import tell

if TYPE_CHECKING:
    from rollscope.answers.run import Run
    from rollscope.instrument.tracer import Tracer

__all__ = ["open", "report"]


def open(run: str | os.PathLike[str], *, dir: str = "runs", threads: int | None = None) -> "Run":
    """Open a recorded run to ask it questions; it may still be written to.

    Args:
        run: Its directory, one of its logs, or its name in `dir`.
        dir: Where runs are looked for by name.
        threads: How many threads a query may use; all cores if not given.

    Raises:
        NotARunError: There is none; the message says what is there instead.
        MissingExtra: What reads runs is not installed.
    """
    try:
        from rollscope.answers.run import open_run  # a training program never loads it
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"reading runs needs {error.name}, which is not installed: "
            "pip install 'rollscope[server]'"
        ) from error
    return open_run(run, dir=dir, threads=threads)


@contextmanager
def report(
    path: str | os.PathLike[str], *, payloads: bool = False, ids: bool = False
) -> Iterator[None]:
    """Record what runs inside, and write a report of it at the end: one HTML file.

    Within a run that is being recorded, the report is of that run from here to the end of the
    block. Otherwise a run is recorded for as long as the block lasts, and not kept. What goes wrong
    with the report is logged as a warning; what is raised inside goes on as it is.

    Args:
        path: The file, which is replaced if there is one.
        payloads: Whether recorded text goes in.
        ids: Whether sessions keep their whole ids.
    """
    own = None if tracing.enabled() else _start_own(path, payloads=payloads)
    began_ns = time.time_ns()
    try:
        yield
    finally:
        try:
            if own is None:
                _write_current(path, began_ns, payloads=payloads, ids=ids)
            else:
                _write_own(own, path, payloads=payloads, ids=ids)
        except Exception as error:  # the work inside is worth more than its report
            tell("no report was written to %s: %s", os.fspath(path), error)


def _start_own(path: str | os.PathLike[str], *, payloads: bool) -> "Tracer | None":
    """Record into a directory that is deleted afterwards; None if that cannot be."""
    import re
    import tempfile

    stem = os.path.basename(os.fspath(path)).rpartition(".")[0]
    # Files may be called what runs may not.
    name = re.sub(r"[^A-Za-z0-9._+=@-]", "-", stem)[:64].lstrip(".-") or "report"
    try:
        directory = tempfile.mkdtemp(prefix="rollscope-report-")
        return tracing.init(
            run=name, dir=directory, sink="file", payloads=payloads or None, viewer=False
        )
    except Exception as error:
        tell("nothing is recorded for the report %s: %s", os.fspath(path), error)
        return None


def _write_own(own: "Tracer", path: str | os.PathLike[str], *, payloads: bool, ids: bool) -> None:
    import shutil

    try:
        # Somebody may have started another run meanwhile, which goes on.
        if tracing._tracer is own:
            tracing.shutdown()
        own.shutdown()
        if not own.settings.enabled:
            raise RollscopeError("recording is switched off")
        _write(os.path.join(own.settings.dir, own.run), path, None, payloads=payloads, ids=ids)
    finally:
        with suppress(OSError):
            shutil.rmtree(own.settings.dir)


def _write_current(
    path: str | os.PathLike[str], began_ns: int, *, payloads: bool, ids: bool
) -> None:
    tracer = tracing._tracer
    if not tracing.enabled() or tracer.settings.sink != "file":
        raise RollscopeError("no run is being recorded into files here")
    tracing.flush()
    run = os.path.join(tracer.settings.dir, tracer.run)
    _write(run, path, began_ns, payloads=payloads, ids=ids)


def _write(
    run: str, path: str | os.PathLike[str], began_ns: int | None, *, payloads: bool, ids: bool
) -> None:
    window = (None, None) if began_ns is None else (began_ns, time.time_ns())
    with open(run) as opened:
        from rollscope.reports import ReportChoices, write_report

        choices = ReportChoices(payloads=payloads, ids=ids)
        write_report(opened.store, path, choices, window=window)
