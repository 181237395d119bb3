"""How much the hub of a Ray cluster keeps: actors that record as fast as they can."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from ingesting.receivers import Receiver, clean_environment

__all__ = ["measure_hub", "work"]

_WORKERS: Final = 4
_RUN: Final = "hub"
_TIMEOUT_S: Final = 180
_BURST: Final = 5_000
_LEAST_DELIVERY_S: Final = 30.0


class Recorder:
    """An actor that records, and knows when the hub has it all."""

    def __init__(self, runs: str, spools: str) -> None:
        import rollscope as rs

        rs.init(run=_RUN, dir=runs, sink="ray", spool_dir=spools)
        with rs.span("ready"):
            pass
        rs.flush()

    def record(self, spans: int) -> None:
        """Record spans in bursts, as sessions come to their ends."""
        import rollscope as rs

        for first in range(0, spans, _BURST):
            with rs.task("hub/1"), rs.session(sample=0), rs.phase("generate"):
                for number in range(first, min(first + _BURST, spans)):
                    with rs.span("work", number=number):
                        pass
        rs.flush(_LEAST_DELIVERY_S)

    def end(self) -> bool:
        """Deliver everything."""
        import rollscope as rs

        return rs.shutdown(_LEAST_DELIVERY_S)


def work(spans: int) -> None:
    """Measure on a cluster of this process's own, and print what was found."""
    import ray

    from rollscope.rayhub.hub import NAMESPACE, hub_name
    from rollscope.store.embedded import RunStore

    ray.init(
        num_cpus=_WORKERS,
        include_dashboard=False,
        object_store_memory=300_000_000,
        log_to_driver=False,
        logging_level=logging.ERROR,
        # Workers find what is measured where the driver found it.
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
    )
    with tempfile.TemporaryDirectory() as name:
        runs = os.path.join(name, "runs")
        recorder = ray.remote(num_cpus=1)(Recorder)
        recorders = [recorder.remote(runs, os.path.join(name, "spools")) for _ in range(_WORKERS)]
        ray.get([one.record.remote(1000) for one in recorders])
        hub = _wait_for_hub(ray, hub_name(runs), NAMESPACE)
        hub_process = Receiver(ray.get(hub.pid.remote()), 0)
        cpu_s, began_s = hub_process.cpu_s(), time.perf_counter()
        ray.get([one.record.remote(spans) for one in recorders])
        recorded_s = time.perf_counter() - began_s
        is_whole = all(ray.get([one.end.remote() for one in recorders]))
        took_s = time.perf_counter() - began_s
        cpu_s = hub_process.cpu_s() - cpu_s
        peak_mb = hub_process.peak_mb()
        ray.kill(hub)
        with RunStore(Path(runs, _RUN)) as store:
            store.refresh()
            kept = store.query("SELECT count(*) AS n FROM spans WHERE name = 'work'")
    total = _WORKERS * (spans + 1000)
    assert is_whole
    assert kept.to_pylist() == [{"n": total}]
    ray.shutdown()
    figures = {
        "spans_per_s": _WORKERS * spans / took_s,
        "recorded_spans_per_s": _WORKERS * spans / recorded_s,
        "hub_spans_per_cpu_s": _WORKERS * spans / cpu_s,
        "hub_peak_mb": peak_mb,
    }
    print(msgspec.json.encode(figures).decode())


def _wait_for_hub(ray: Any, name: str, namespace: str) -> Any:  # noqa: ANN401  (Ray's handles)
    ends_at = time.monotonic() + _LEAST_DELIVERY_S
    while True:
        try:
            return ray.get_actor(name, namespace=namespace)
        except ValueError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.05)


def measure_hub(script: Path, spans: int) -> dict[str, float]:
    """Measure in a process, and on a cluster, of its own."""
    command = [sys.executable, str(script), "--worker", "hub", "--spans", str(spans)]
    done = subprocess.run(
        command, env=clean_environment(), capture_output=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"the hub: {done.stderr.decode(errors='replace')[-2000:]}")
    found: Any = msgspec.json.decode(done.stdout.strip().rpartition(b"\n")[2])
    return {str(key): float(value) for key, value in found.items()}
