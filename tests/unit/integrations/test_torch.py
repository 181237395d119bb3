"""Spans as ranges of torch's profiler; a stand-in for torch writes down what it is told."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

import rollscope as rs
from rollscope.errors import MissingExtra
from rollscope.instrument import default
from rollscope.instrument.recorder import Recorder
from rollscope.integrations import torch as integration
from rollscope.testing.capture import capture


class Torch(ModuleType):
    """As much of torch as is used."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.told: list[str] = []
        self.is_profiling = True
        told = self.told

        class Region:
            def __init__(self, name: str) -> None:
                self.name = name

            def __enter__(self) -> None:
                told.append(f"+{self.name}")

            def __exit__(self, *error: object) -> None:
                told.append(f"-{self.name}")

        self.profiler = SimpleNamespace(record_function=Region)
        self.autograd = SimpleNamespace(_profiler_enabled=lambda: self.is_profiling)

        def range_start(name: str) -> str:
            told.append(f"nvtx+{name}")
            return name

        nvtx = SimpleNamespace(
            range_start=range_start,
            range_end=lambda handle: told.append(f"nvtx-{handle}"),
        )
        self.cuda = SimpleNamespace(nvtx=nvtx)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Torch]:
    stand_in = Torch()
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    yield stand_in
    integration.uninstall()
    assert Recorder.dress is None


def test_steps_spans_phases_and_states_are_ranges(torch: Torch) -> None:
    integration.install()
    with capture() as captured:
        with rs.step(3), rs.task("item"), rs.session() as session:
            with rs.phase("generate"), rs.span("forward", category="compute", rows=2) as span:
                span.set(more=1)
            with rs.state("busy", lane="replica_0"):
                pass
            session.finish("accepted")

        @rs.trace("traced")
        def traced() -> None:
            pass

        traced()
        recorded = {span.name: span for span in captured.spans()}

    assert torch.told == [
        "+step 3",
        "+generate",
        "+forward",
        "-forward",
        "-generate",
        "+busy",
        "-busy",
        "-step 3",
        "+traced",
        "-traced",
    ]
    assert recorded["forward"].attrs == {"rows": 2, "more": 1}
    assert recorded["forward"].parent_id == recorded["generate"].span_id
    assert recorded["busy"].lane == "replica_0"
    assert recorded["session"].outcome == "accepted"
    assert {span.status for span in recorded.values()} == {"ok"}


def test_an_error_ends_range_and_span(torch: Torch) -> None:
    integration.install()
    with capture() as captured:
        with pytest.raises(ValueError, match="no"), rs.span("outer"), rs.span("inner"):
            raise ValueError("no")
        assert [span.status for span in captured.spans()] == ["error", "error"]

    assert torch.told == ["+outer", "+inner", "-inner", "-outer"]


def test_ranges_of_nvtx_end_in_any_order(torch: Torch) -> None:
    integration.install(nvtx=True)
    torch.is_profiling = False

    async def work(name: str, mine: asyncio.Event, other: asyncio.Event) -> None:
        async with rs.phase(name):
            other.set()
            await mine.wait()

    async def main() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        await asyncio.gather(work("a", first, second), work("b", second, first))

    with capture():
        asyncio.run(main())

    assert torch.told[:2] == ["nvtx+a", "nvtx+b"]
    assert sorted(torch.told[2:]) == ["nvtx-a", "nvtx-b"]


def test_nothing_is_opened_while_nobody_profiles(torch: Torch) -> None:
    integration.install()
    torch.is_profiling = False
    with capture(), rs.span("unseen"):
        torch.is_profiling = True
        with rs.span("seen"):
            pass

    assert torch.told == ["+seen", "-seen"]


def test_a_recorder_that_runs_takes_it_on_and_lets_it_go(torch: Torch) -> None:
    with capture() as captured:
        with rs.span("before"):
            integration.install()
            with rs.span("during"):
                integration.uninstall()
        with rs.span("after"):
            pass
        assert [span.status for span in captured.spans()] == ["ok"] * 3

    assert torch.told == ["+during", "-during"]


def test_entering_a_span_twice_opens_one_range(torch: Torch) -> None:
    integration.install()
    with capture() as captured:
        span = rs.span("again")
        with span, span:
            pass
        with span:
            pass
        assert len(captured.spans()) == 2

    assert torch.told == ["+again", "-again"] * 2


def test_a_torch_that_fails_does_not_hurt(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    integration.install(nvtx=True)
    torch.cuda = SimpleNamespace()  # as without CUDA
    with capture() as captured:
        with rs.span("safe"):
            pass
        assert captured.named("safe").status == "ok"


def test_torch_is_waited_for_if_it_is_not_loaded_yet(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    integration.install()
    with capture() as captured:
        monkeypatch.delitem(sys.modules, "torch")
        with rs.span("early"):
            monkeypatch.setitem(sys.modules, "torch", torch)
            with rs.span("late"):
                pass
        assert len(captured.spans()) == 2

    assert torch.told == ["+late", "-late"]


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match="pip install torch"):
        integration.install()
    assert Recorder.dress is None


def test_spans_are_made_as_ever_when_it_is_not_installed() -> None:
    with capture():
        recorder = default._tracer._recorder
        assert recorder is not None
        assert recorder.new_span is recorder._bare_types.new_span
        assert recorder.types is recorder._bare_types


def test_importing_the_integration_does_not_load_torch() -> None:
    code = (
        "import json, sys; import rollscope.integrations.torch; loaded = sys.modules;"
        "print(json.dumps(['torch' in loaded, 'rollscope.instrument.recorder' in loaded]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert json.loads(shown.stdout) == [False, False]
