from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from rollscope.server.lean import without_pandas

before = list(sys.meta_path)
with without_pandas():
    import rollscope.server.serving
assert sys.meta_path == before

import pyarrow
table = pyarrow.table({"a": pyarrow.array([1, None])})
print(table.num_rows, "pandas" in sys.modules)
"""
HAVING_IT = """
import sys, types
sys.modules["pandas"] = types.ModuleType("pandas")
from rollscope.server.lean import without_pandas

with without_pandas():
    import pandas
print("kept")
"""


def told(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_server_is_loaded_without_pandas() -> None:
    assert told(PROGRAM) == "2 False"


def test_a_pandas_that_is_loaded_already_can_be_used() -> None:
    assert told(HAVING_IT) == "kept"
