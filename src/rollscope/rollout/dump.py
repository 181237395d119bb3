"""Keeping trajectories as text beside a run: one JSON line per sample, written by a thread."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.rollout.trajectory import Trajectory

__all__ = ["DumpWriter", "describe_samples", "load_tokenizer"]

_log = logging.getLogger("rollscope.rollout")

_MOST_WAITING: Final = 10_000
_END: Final = object()


class DumpWriter:
    """Appends samples to a file of this process; what cannot be written is counted, not raised.

    Args:
        folder: Where the file is made.
        tokenizer: Decodes tokens; without one they are written as numbers.
    """

    def __init__(self, folder: str | os.PathLike[str], tokenizer: Any = None) -> None:  # noqa: ANN401
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.path = Path(folder) / f"rollouts-{os.getpid()}.jsonl"
        # Here and not in the thread: nobody would hear that it cannot be opened.
        self._file = self.path.open("a", encoding="utf-8")
        self.lost = 0
        self._tokenizer = tokenizer
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write, name="rollscope-dump", daemon=True)
        self._thread.start()

    def put(self, task_id: int, trajectory: Trajectory, *, accepted: bool) -> None:
        """Have a trajectory written soon; it is lost if the disk cannot keep up."""
        try:
            self._waiting.put_nowait((task_id, trajectory, accepted))
        except queue.Full:
            self.lost += 1

    def close(self) -> None:
        """Write what waits, and end."""
        self._waiting.put(_END)
        self._thread.join()
        if self.lost:
            _log.warning("%d trajectories were not written to %s", self.lost, self.path)

    def _write(self) -> None:
        with self._file as file:
            while (given := self._waiting.get()) is not _END:
                task_id, trajectory, accepted = given
                try:
                    for sample in describe_samples(trajectory, self._tokenizer):
                        line = {"task_id": task_id, "accepted": accepted, **sample}
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    if self._waiting.empty():
                        file.flush()
                except Exception:  # the host's tokenizer, arrays or disk
                    self.lost += 1
                    _log.exception("task %s cannot be written to %s", task_id, self.path)


def describe_samples(trajectory: Trajectory, tokenizer: Any = None) -> list[dict[str, Any]]:  # noqa: ANN401
    """Put each sample of a trajectory into words: lengths, versions, reward, prompt, completion."""
    rows = zip(trajectory["input_ids"].tolist(), trajectory["attention_mask"].tolist(), strict=True)
    samples = []
    for number, (ids, mask) in enumerate(rows):
        length = sum(map(bool, mask))
        trained = _row(trajectory, "loss_mask", number)[:length]
        begins = next((at for at, is_on in enumerate(trained) if is_on), length)
        versions = [one for one in _row(trajectory, "versions", number)[:length] if one >= 0]
        samples.append(
            {
                "sample": number,
                "length": length,
                "prompt_length": begins,
                "completion_length": length - begins,
                "head_version": versions[0] if versions else None,
                "tail_version": versions[-1] if versions else None,
                "reward": next(iter(_row(trajectory, "rewards", number)), None),
                "prompt": _text(ids[:begins], tokenizer),
                "completion": _text(ids[begins:length], tokenizer),
            }
        )
    return samples


def load_tokenizer(path: str) -> Any:  # noqa: ANN401  (whatever the library gives)
    """Load a tokenizer by its name or folder.

    Raises:
        MissingExtra: The library for it is not installed.
    """
    try:
        from transformers import AutoTokenizer  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingExtra(
            "tokenizer_path is set, and reading it needs transformers: `pip install transformers`"
        ) from error
    return AutoTokenizer.from_pretrained(path)


def _row(trajectory: Trajectory, key: str, number: int) -> list[Any]:
    values = trajectory.get(key)
    if values is None or not hasattr(values, "tolist"):
        return []
    row = values.tolist()[number]
    return row if isinstance(row, list) else [row]


def _text(ids: Sequence[int], tokenizer: Any) -> str | list[int]:  # noqa: ANN401
    return list(ids) if tokenizer is None else str(tokenizer.decode(ids))
