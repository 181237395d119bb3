"""Names inside a run directory.

runs/<run>/
  run.json       name, creation time, schema version, tags
  log/*.rsl      one append-only log of frames per process
  payloads/*.rsl trajectory text, apart from timing
  asked/*        touched to ask a process where its open spans hang
"""

from typing import Final

import msgspec

__all__ = ["LOG_DIR", "LOG_SUFFIX", "PAYLOAD_DIR", "RUN_FILE", "RunFile"]

RUN_FILE: Final = "run.json"
LOG_DIR: Final = "log"
PAYLOAD_DIR: Final = "payloads"
LOG_SUFFIX: Final = ".rsl"


class RunFile(msgspec.Struct):
    """The content of run.json."""

    name: str
    created_ns: int
    schema: int
    tags: dict[str, str] = {}
