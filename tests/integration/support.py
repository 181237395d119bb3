"""What the integration tests share: running programs, waiting for them, reading their runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollscope.store.fold import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rollscope.model.records import SpanRecord
    from rollscope.store.fold import Folded

__all__ = ["PATIENCE_S", "Lab", "Raw", "endings", "eventually"]

PATIENCE_S = 30.0
"""How long something may take that takes a moment; only a failing test waits for it."""

_ROOT = Path(__file__).parents[2]

Raw = dict[str, Any]
"""One record as `rollscope cat` prints it."""


class Lab:
    """A folder with one run, and the programs that record into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "runs" / "run"
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self, source: str, *args: object, env: Mapping[str, str] | None = None, **popen: Any
    ) -> subprocess.Popen[str]:
        """Start a program whose `rs.init()` joins the run; its standard streams are pipes."""
        program = self.folder / f"program{len(self._started)}.py"
        program.write_text(textwrap.dedent(source))
        return self.launch([sys.executable, str(program), *map(str, args)], env=env, **popen)

    def launch(
        self, command: list[str], env: Mapping[str, str] | None = None, **popen: Any
    ) -> subprocess.Popen[str]:
        """Start any command in the environment of the run."""
        process = subprocess.Popen(
            command,
            text=True,
            cwd=self.folder,
            env={**self.environment(), **(env or {})},
            stdin=popen.pop("stdin", subprocess.PIPE),
            stdout=popen.pop("stdout", subprocess.PIPE),
            stderr=popen.pop("stderr", subprocess.PIPE),
            **popen,
        )
        self._started.append(process)
        return process

    def environment(self) -> dict[str, str]:
        """Give the environment of a host program: faults are logged there, not raised."""
        theirs = {name: value for name, value in os.environ.items() if name != "ROLLSCOPE_RAISE"}
        return theirs | {
            "ROLLSCOPE_DIR": str(self.run.parent),
            "ROLLSCOPE_RUN": self.run.name,
            "PYTHONPATH": str(_ROOT),  # programs import `tests.integration.misbehaviour`
            "PYTHONUNBUFFERED": "1",
        }

    def finish(self, source: str, *args: object, **options: Any) -> None:
        """Run a program to its end, which must be a quiet success."""
        process = self.start(source, *args, **options)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, err) == (0, ""), f"{process.returncode}\n{out}\n{err}"

    def close(self) -> None:
        """End what still runs, and let go of all pipes."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()

    def command(self, *args: object) -> list[str]:
        """Give the words of a `rollscope` command."""
        return [sys.executable, "-m", "rollscope", *map(str, args)]

    def cat(self, *args: object) -> list[Raw]:
        """Give what `rollscope cat` prints about the run; it must find nothing wrong."""
        done = subprocess.run(
            self.command("cat", self.run, *args),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def read(self) -> Folded:
        """Give the run as a reader folds it; it must find nothing wrong."""
        folded = read_run(self.run)
        assert folded.problems == []
        return folded

    def spans(self) -> list[SpanRecord]:
        """Give one record per span in order of start, after checking that none ended twice."""
        doubled = {span_id: n for span_id, n in endings(self.cat()).items() if n > 1}
        assert doubled == {}
        spans = self.read().spans.values()
        return sorted(spans, key=lambda span: (span.start_ns, span.span_id))

    def statuses(self) -> dict[str, str]:
        """Give the status of each span by its name; no name may come twice."""
        spans = self.spans()
        names = Counter(span.name for span in spans)
        assert all(number == 1 for number in names.values()), names
        return {span.name: str(span.status) for span in spans}

    def named(self, name: str) -> SpanRecord:
        """Give the one span of a name."""
        (span,) = [span for span in self.spans() if span.name == name]
        return span


def endings(records: Iterable[Raw]) -> Counter[str]:
    """Count, for each span, the records that say it ended."""
    return Counter(
        record["span_id"]
        for record in records
        if record["record"] == "span" and record["status"] != "open"
    )


def eventually(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until a condition gives something true, and give that."""
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)
    return found
