"""Readers that seal: killed at any moment, several at once, without room, without the right."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.testing import RunShape, generate_run
from tests.builders import SECOND
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.testing import RunTruth

_KILLS = 15
_READER = """
    import json, sys
    from pathlib import Path
    from rollscope.store import intake, sealer
    from rollscope.store.embedded import RunStore

    run, seal_rows, now_ns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sealer.SEAL_ROWS, intake._CHUNK_BYTES = seal_rows, 100_000
    sealer._WORTH_SEALING, sealer._SEAL_AFTER_S, sealer._RETRY_S = 1, 0.02, 0.0

    def report(store):
        rows, ids, total = store.query(
            "SELECT count(*) AS a, count(DISTINCT span_id) AS b, "
            "bit_xor(hash(span_id, status, recorded_start_ns, recorded_end_ns, attrs)) AS c "
            "FROM spans"
        ).to_pylist()[0].values()
        sealed = sum(s.rows for s in store.sealer.manifest.segments if s.table == "spans")
        print(json.dumps([rows, ids, str(total), sealed, store.problems]), flush=True)
"""
_SEAL_ONCE = (
    _READER
    + """
    print("begun", flush=True)
    with RunStore(run, now_ns=now_ns, threads=1) as store:
        store.seal()
        report(store)
"""
)
_SEAL_ON_DEMAND = (
    _READER
    + """
    store = RunStore(run, now_ns=now_ns, threads=1)
    for line in sys.stdin:
        if line == "ask\\n":
            store.refresh()
            report(store)
        elif line.startswith("room"):
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
        else:
            store.refresh()
            print(json.dumps(store.seal()), flush=True)
    store.close()
"""
)
_FOLLOW = (
    _READER
    + """
    import os, time
    store = RunStore(run, now_ns=now_ns, threads=1)
    while not Path(sys.argv[4]).exists():
        store.refresh()
    store.refresh()
    store.seal()
    report(store)
    sys.stdin.readline()
    store.refresh()
    report(store)
    store.close()
"""
)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunTruth]:
    run = tmp_path_factory.mktemp("generated") / "run"
    shape = RunShape.sized(60_000)
    return run, generate_run(run, shape)


def _ask(program: subprocess.Popen[str], line: str = "ask") -> Any:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(line + "\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    assert answer, program.stderr and program.stderr.read()
    return json.loads(answer)


def _answer(program: subprocess.Popen[str]) -> Any:
    assert program.stdout is not None
    answer = program.stdout.readline()
    assert answer, program.stderr and program.stderr.read()
    return json.loads(answer)


def _unsealed_answer(lab: Lab, run: Path, now_ns: int) -> list[Any]:
    """Give what a reader says who read the logs alone."""
    shutil.copytree(run / "log", lab.folder / "alone" / "log")
    program = lab.start(_SEAL_ONCE, lab.folder / "alone", 10**9, now_ns)
    out, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, err
    answer: list[Any] = json.loads(out.splitlines()[-1])
    return answer


def test_readers_killed_while_they_seal_leave_every_row_exactly_once(
    lab: Lab, generated: tuple[Path, RunTruth], tmp_path: Path
) -> None:
    source, truth = generated
    run = tmp_path / "run"
    shutil.copytree(source, run)
    now_ns = truth.end_ns + 100 * SECOND
    clock = random.Random(7)
    halfway = 0
    for number in range(_KILLS):
        program = lab.start(_SEAL_ONCE, run, 2_000, now_ns)
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        # Killed after a while, or as soon as it has sealed something new.
        known = len(list(run.glob("segments/manifest-*.json")))
        deadline = time.monotonic() + clock.uniform(0.0, 0.4)
        while time.monotonic() < deadline:
            if number % 3 == 0 and len(list(run.glob("segments/manifest-*.json"))) > known:
                break
            time.sleep(0.001)
        program.kill()
        program.wait()
        names = {path.name for path in run.glob("segments/*")}
        halfway += any(name.endswith(".tmp") for name in names) or len(names) > 0
    assert halfway > 0

    last = lab.start(_SEAL_ONCE, run, 2_000, now_ns)
    out, err = last.communicate(timeout=PATIENCE_S)
    assert last.returncode == 0, err
    rows, ids, total, _, problems = json.loads(out.splitlines()[-1])
    assert (rows, ids, problems) == (truth.total_spans, truth.total_spans, [])
    assert total == _unsealed_answer(lab, run, now_ns)[2]


def test_readers_that_seal_a_growing_run_at_once_lose_and_double_nothing(
    lab: Lab, generated: tuple[Path, RunTruth], tmp_path: Path
) -> None:
    source, truth = generated
    run, done = tmp_path / "run", tmp_path / "done"
    (run / "log").mkdir(parents=True)
    now_ns = truth.end_ns + 100 * SECOND
    programs = [lab.start(_FOLLOW, run, 4_000, now_ns, done) for _ in range(3)]
    _grow(source, run)
    done.touch()
    for program in programs:
        assert _answer(program)[:2] == [truth.total_spans] * 2
    answers = []
    for program in programs:  # all have sealed by now
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
        answers.append(_answer(program))
    alone = _unsealed_answer(lab, run, now_ns)
    for rows, ids, total, sealed, problems in answers:
        assert (rows, ids, problems) == (truth.total_spans, truth.total_spans, [])
        assert total == alone[2]
        assert 0 < sealed <= rows  # how much differs: each may be sealing more right now
    manifests = list(run.glob("segments/manifest-*.json"))
    assert len(manifests) > len(programs)


def _grow(source: Path, run: Path) -> None:
    """Copy logs piece by piece, cut at any byte, as processes would have written them."""
    contents = {path.name: path.read_bytes() for path in source.glob("log/*.rsl")}
    pieces = 40
    for at in range(pieces):
        for name, data in contents.items():
            low, high = len(data) * at // pieces, len(data) * (at + 1) // pieces
            with (run / "log" / name).open("ab") as file:
                file.write(data[low:high])


# Without room


def _may_mount() -> bool:
    """Say whether this process has the right to mount (CAP_SYS_ADMIN)."""
    with open("/proc/self/status") as file:
        (held,) = [line.split()[1] for line in file if line.startswith("CapEff:")]
    return bool(int(held, 16) >> 21 & 1)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _small_run(run: Path) -> tuple[int, int]:
    truth = generate_run(run, RunShape(clock_offsets_s=()))
    return truth.total_spans, truth.end_ns + 100 * SECOND


def _fill(path: Path) -> None:
    with path.open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


if _may_mount():

    def test_on_a_full_disk_a_reader_answers_from_memory_and_seals_when_there_is_room(
        lab: Lab, disk: Path
    ) -> None:
        run = disk / "run"
        spans, now_ns = _small_run(run)
        with pytest.raises(OSError, match="No space"):
            _fill(disk / "filler")
        reader = lab.start(_SEAL_ON_DEMAND, run, 10**9, now_ns)
        assert _ask(reader)[:4] == [spans, spans, _ask(reader)[2], 0]
        assert _ask(reader, "seal") is False
        told = _ask(reader)[4]
        assert len(told) == 1
        assert "cannot be written" in told[0]
        assert "No space left on device" in told[0]
        assert [p for p in run.glob("segments/*") if p.suffix != ".json"] == []

        (disk / "filler").unlink()
        assert _ask(reader, "seal") is True
        assert _ask(reader)[:2] == [spans, spans]
        assert _ask(reader)[3] > 0

    def test_a_run_on_a_file_system_that_is_read_only_is_sealed_in_the_cache(
        lab: Lab, disk: Path, tmp_path: Path
    ) -> None:
        run = disk / "run"
        spans, now_ns = _small_run(run)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        cache = tmp_path / "cache"
        for _ in range(2):
            env = {"XDG_CACHE_HOME": str(cache)}
            reader = lab.start(_SEAL_ON_DEMAND, run, 10**9, now_ns, env=env)
            assert _ask(reader, "seal") is True
            assert _ask(reader)[:2] == [spans, spans]
            assert _ask(reader)[4] == []
            reader.communicate(timeout=PATIENCE_S)
        assert list(cache.glob("rollscope/*/manifest-*.json"))
        assert not (run / "segments").exists()

        env = {"XDG_CACHE_HOME": str(run / "nowhere")}
        reader = lab.start(_SEAL_ON_DEMAND, run, 10**9, now_ns, env=env)
        assert _ask(reader, "seal") is False
        assert _ask(reader)[:2] == [spans, spans]


def test_a_limit_on_file_sizes_leaves_a_reader_that_answers_from_memory(
    lab: Lab, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    spans, now_ns = _small_run(run)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 2**30))

    reader = lab.start(_SEAL_ON_DEMAND, run, 10**9, now_ns, preexec_fn=limit)
    assert _ask(reader, "seal") is False
    rows, ids, _, sealed, problems = _ask(reader)
    assert (rows, ids, sealed) == (spans, spans, 0)
    assert "File too large" in problems[0]
    for _ in range(100):  # what was being written meanwhile is removed a moment later
        if not list(run.glob("segments/*.parquet")):
            break
        _ask(reader)
    assert not list(run.glob("segments/*.parquet"))

    assert reader.stdin is not None
    reader.stdin.write("room\n")
    assert _ask(reader, "seal") is True
    assert _ask(reader)[:2] == [spans, spans]
    assert _ask(reader)[3] > 0


def test_a_folder_without_the_right_to_write_is_sealed_in_the_cache(
    lab: Lab, tmp_path: Path
) -> None:
    run, cache = tmp_path / "run", tmp_path / "cache"
    spans, now_ns = _small_run(run)
    if os.geteuid() == 0:  # whom no folder refuses; a file where the folder should be does
        (run / "segments").touch()
    else:
        run.chmod(0o500)
    try:
        env = {"XDG_CACHE_HOME": str(cache)}
        reader = lab.start(_SEAL_ON_DEMAND, run, 10**9, now_ns, env=env)
        assert _ask(reader, "seal") is True
        assert _ask(reader)[:2] == [spans, spans]
        assert list(cache.glob("rollscope/*/manifest-*.json"))
    finally:
        run.chmod(0o700)


# A program that records meanwhile

_WRITER = """
    import os, sys, threading, time
    import rollscope as rs

    rs.init(heartbeat_s=0.5)
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    print("ready", flush=True)
    number = 0
    with rs.task("math/1"), rs.session(sample=1):
        with rs.phase("hangs"):
            while not stop.is_set():
                for _ in range(30):
                    with rs.span("work", number=number):
                        number += 1
                time.sleep(0.01)
            print(number, flush=True)
            sys.stdin.readline()
"""
_WATCHER = """
    import json, sys, time
    from pathlib import Path
    from rollscope.store.embedded import RunStore

    store = RunStore(Path(sys.argv[1]), threads=1)
    until = time.monotonic() + float(sys.argv[2])
    lags, statuses = [], set()
    while time.monotonic() < until:
        store.refresh()
        (row,) = store.query(
            "SELECT count(*) AS n, max(end_ns) FILTER (WHERE name = 'work') AS latest, "
            "max(status) FILTER (WHERE name = 'hangs') AS hangs FROM spans"
        ).to_pylist()
        if row["n"] > 1000:
            lags.append(time.time_ns() - row["latest"])
            statuses.add(row["hangs"])
        time.sleep(0.05)
    # Not ru_maxrss: that counts what the program had that started this one.
    status = Path("/proc/self/status").read_text()
    peak_kb = int(status.split("VmHWM:")[1].split()[0])
    print(json.dumps([max(lags) / 1e9, len(lags), sorted(statuses), peak_kb]), flush=True)
    for line in sys.stdin:
        store.refresh()
        rows = store.query("SELECT name, status, count(*) AS n FROM spans GROUP BY ALL")
        found = {f"{r['name']} {r['status']}": r["n"] for r in rows.to_pylist()}
        print(json.dumps([found, store.problems]), flush=True)
"""


def _has_seen(watcher: subprocess.Popen[str], recorded: int) -> bool:
    found, _ = _ask(watcher)
    return bool(found.get("work ok") == recorded)


def test_readers_follow_a_program_and_see_what_was_open_when_it_is_killed(lab: Lab) -> None:
    writer = lab.start(_WRITER)
    assert writer.stdout is not None
    assert writer.stdin is not None
    assert writer.stdout.readline() == "ready\n"
    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the log")
    watchers = [lab.start(_WATCHER, lab.run, 5) for _ in range(2)]
    for watcher in watchers:
        lag_s, looks, statuses, peak_kb = _answer(watcher)
        print(f"seen {lag_s:.2f} s after it ended at the latest, {looks} looks, {peak_kb} kB")  # noqa: T201
        assert looks > 3
        assert lag_s < 10  # a second, and patience with a busy machine
        assert statuses == ["open"]
        assert peak_kb < 400_000
    writer.stdin.write("stop\n")
    writer.stdin.flush()
    recorded = int(writer.stdout.readline())
    assert recorded > 5_000
    for watcher in watchers:
        has_all = partial(_has_seen, watcher, recorded)
        eventually(has_all, "all of them")

    writer.kill()
    writer.wait()
    for watcher in watchers:
        found, problems = _ask(watcher)
        assert problems == []
        assert found == {
            "work ok": recorded,
            "hangs lost": 1,
            "session lost": 1,
            "task lost": 1,
        }
