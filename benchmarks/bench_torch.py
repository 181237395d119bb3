"""What tracing costs a training with PyTorch: steps of examples/torch_grpo.py, on and off in turn.

python benchmarks/bench_torch.py [--rounds 4] [-- arguments of the example]
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "torch_grpo.py"
_STEP = re.compile(r"^step \d+: reward ([\d.]+) in ([\d.]+) ms$", re.M)
_WARM_UP = 3
"""Steps that are left out: the first ones load kernels."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("rest", nargs="*", help="arguments of the example")
    args = parser.parse_args()
    took: dict[str, list[float]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            # Whoever goes first in a round goes last in the next.
            for mode in ("off", "on") if number % 2 else ("on", "off"):
                place = Path(folder, f"{number}-{mode}")
                took[mode] += run_example(mode, place, args.rest)
    off, on = statistics.median(took["off"]), statistics.median(took["on"])
    spread = statistics.median(abs(one - off) for one in took["off"])
    print(f"{len(took['on'])} steps each, {args.rounds} rounds in turn, {_device()}")
    print(f"  off   {off:9.2f} ms a step (median; half of them within {spread:.2f} ms)")
    print(f"  on    {on:9.2f} ms a step")
    print(f"  tracing costs {100 * (on - off) / off:+.2f} % of a step")


def run_example(mode: str, place: Path, arguments: list[str]) -> list[float]:
    """Run the example once and give the milliseconds of its steps."""
    environ = {**os.environ, "ROLLSCOPE": mode, "ROLLSCOPE_DIR": str(place)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    steps = [float(found[2]) for found in _STEP.finditer(done.stdout)]
    return steps[_WARM_UP:]


def _device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


if __name__ == "__main__":
    main()
