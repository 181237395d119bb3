"""Fakes and generators for testing instrumented programs, and Rollscope itself."""

from rollscope.testing.capture import Capture, capture
from rollscope.testing.fakes import FakeClock, SequentialIds

__all__ = ["Capture", "FakeClock", "SequentialIds", "capture"]
