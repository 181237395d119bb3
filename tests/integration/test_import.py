import json
import signal
import subprocess
import sys
import time
from pathlib import Path

_SAMPLE = Path(__file__).parents[1] / "fixtures/areal/session_tracer/rollout/sessions-r0.jsonl"


def _command(source: Path, runs: Path) -> list[str]:
    verb = [sys.executable, "-m", "rollscope", "import", str(source)]
    return [*verb, "--dir", str(runs), "--run", "r", "--json"]


def test_a_killed_import_starts_over_and_doubles_nothing(tmp_path: Path) -> None:
    first = json.loads(_SAMPLE.read_text().splitlines()[0])
    source, runs = tmp_path / "sessions.jsonl", tmp_path / "runs"
    count = 30_000
    with open(source, "w") as file:
        for number in range(count):
            file.write(json.dumps({**first, "session_id": number, "task_id": number}) + "\n")
    process = subprocess.Popen(_command(source, runs), stdout=subprocess.DEVNULL)
    written = runs / ".r.importing" / "log"
    deadline = time.monotonic() + 60
    while not written.exists() and time.monotonic() < deadline:
        time.sleep(0.01)  # looks for the file; nothing tells when it comes
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert written.exists()
    assert not (runs / "r").exists()
    done = subprocess.run(_command(source, runs), capture_output=True, check=True)
    report = json.loads(done.stdout)
    assert report["counts"]["sessions accepted"] == count
    assert not written.exists()
