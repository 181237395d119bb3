"""Spans as ranges in a trace of torch's profiler; needs torch, and uses a GPU if there is one.

python examples/torch_ranges.py [folder], then open FOLDER/trace.json in Perfetto; with NVTX:
nsys profile --trace=nvtx,cuda python examples/torch_ranges.py
"""

import json
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found,unused-ignore]

import rollscope as rs
from rollscope.integrations.torch import install


def train(device: str) -> None:
    """Do as much as a trace needs to show."""
    model = torch.nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(3):
        with rs.step(number):
            with rs.span("forward", category="compute"):
                loss = model(torch.randn(64, 512, device=device)).square().mean()
            with rs.span("backward", category="compute"):
                loss.backward()
            with rs.span("optimizer", category="compute"):
                optimizer.step()
                optimizer.zero_grad()


def main() -> None:
    """Train under the profiler, and say which ranges its trace holds."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rs.init(run="torch-ranges", dir=folder)
    install(nvtx=device == "cuda")
    with torch.profiler.profile() as profile:
        train(device)
    trace = folder / "trace.json"
    profile.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    for name in ("step 0", "forward", "backward", "optimizer"):
        print(f"{name}: {names.count(name)} ranges on {device}")
    rs.shutdown()


if __name__ == "__main__":
    main()
