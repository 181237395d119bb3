"""Fakes and generators for testing instrumented programs, and Rollscope itself."""

from rollscope.testing.capture import Capture, capture
from rollscope.testing.fakes import FakeClock, SequentialIds
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape, RunTruth
from rollscope.testing.virtualtime import VirtualDeadlock, VirtualTimeLoop, run_virtual

__all__ = [
    "Capture",
    "FakeClock",
    "RunShape",
    "RunTruth",
    "SequentialIds",
    "VirtualDeadlock",
    "VirtualTimeLoop",
    "capture",
    "generate_run",
    "run_virtual",
]
