"""How long it takes to import XTuner's producer trace, two lines a span, and how much memory.

Run it alone: `python benchmarks/bench_import_producer.py [EVENTS]`. The floor is one pass of the
JSON decoder over the same lines.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from rollscope.importing.running import import_run

_EVENTS = 1_000_000
_GROUP = 8
_NAMES = (
    "xtuner.producer.generate_group",
    "xtuner.agent_loop.generate_group",
    "xtuner.agent_loop.generate_sample",
    "xtuner.rollout_controller.generate",
    "xtuner.rollout_worker.generate",
    "xtuner.lmdeploy.request",
)


def write_events(path: Path, samples: int) -> None:
    """Write a made-up trace: samples in groups of eight, six spans each."""
    with open(path, "w") as file:
        for sample in range(samples):
            step = sample // 1024
            begun = 1794728682.0 + sample // _GROUP * 0.01 + sample % _GROUP * 1e-5
            event = {
                "trace_id": f"gsm8k:{sample}",
                "status": "completed",
                "task_name": "gsm8k",
                "uid": sample,
                "train_step": step,
                "model_step": step,
                "produce_batch_id": f"train_step={step}",
                "worker_rank": None,
            }
            edges = [(f"{name}.start", at * 1e-6, None) for at, name in enumerate(_NAMES)]
            ends = [(f"{name}.end", 5 - at * 1e-6, 5.0) for at, name in enumerate(_NAMES)]
            for stage, later, elapsed in edges + ends[::-1]:
                when = round(begun + later, 6)
                said = {"stage": stage, "timestamp_s": when, "elapsed_s": elapsed}
                file.write(json.dumps({**event, **said}) + "\n")


def main() -> None:
    """Print one table and one JSON line."""
    samples = int(sys.argv[1] if len(sys.argv) > 1 else _EVENTS) // (2 * len(_NAMES))
    events = samples * 2 * len(_NAMES)
    decode = msgspec.json.Decoder().decode
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "producer_trace_1_0001_000000.jsonl")
        write_events(file, samples)
        began = time.process_time()
        with open(file, "rb") as lines:
            for line in lines:
                decode(line)
        floor_s = time.process_time() - began
        began = time.process_time()
        report = import_run([file], Path(made, "run"))
        cpu_s = time.process_time() - began
    assert report.counts["spans"] == samples * len(_NAMES)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{events:,} events of {samples:,} samples")
    print(f"  decoding alone {floor_s:6.1f} s CPU")
    print(f"  import         {cpu_s:6.1f} s CPU, {cpu_s / floor_s:.1f}x")
    print(f"  peak memory    {peak_mb:6.0f} MB")
    figures = {"events": events, "cpu_s": cpu_s, "floor_s": floor_s, "peak_mb": peak_mb}
    print(json.dumps({"bench": "import_producer", **figures}))


if __name__ == "__main__":
    main()
