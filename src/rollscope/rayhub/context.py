"""What goes along with a remote call: the current span, and how its process records.

The side that is called goes on under that span. If it does not record yet, it begins to, into the
same run; so an actor that was made before anybody recorded does so from its first call on.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, TypedDict

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.instrument.propagation import Attachment
from rollscope.instrument.rayplace import describe_ray
from rollscope.instrument.spans import NOOP

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.tracer import Tracer

__all__ = ["Carried", "arrive", "take_along"]


class Carried(TypedDict):
    """What a call carries; plain values, so that any version can read it."""

    headers: dict[str, str]
    """The context, as `rollscope.inject` writes it."""
    settings: dict[str, Any]
    """What `rollscope.init` has to be given to record into the same run."""
    since_ns: int
    """When recording began; of two runs, the later one is meant."""
    follow_all: bool
    """Whether remote functions and actors are followed without being told."""


class _State:
    """What this process knows of the recordings that calls came from."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: tuple[Recorder, dict[str, Any], int] | None = None
        """A recorder of this process, its portable settings, and since when it records."""
        self.tracer: Tracer | None = None
        """The tracer that was started here because a call came."""
        self.since_ns = 0
        """Of the recording that was joined last."""


_state = _State()


def take_along(*, follow_all: bool) -> Carried | None:
    """Give what a call of this process carries now; None if nothing is recorded."""
    tracer = default._tracer
    recorder = tracer._recorder
    if recorder is None:
        return None
    known = _state.known
    if known is None or known[0] is not recorder:
        since_ns = _state.since_ns if tracer is _state.tracer else time.time_ns()
        known = _state.known = (recorder, tracer._portable_settings(), since_ns)
    return {
        "headers": tracer.inject(),
        "settings": known[1],
        "since_ns": known[2],
        "follow_all": follow_all,
    }


def arrive(carried: Carried) -> Attachment:
    """Go on where a call came from, for a `with` block; never raises."""
    with guarded("taking up a context that came over Ray"):
        if not _is_joined(carried):
            _join(carried)
        return default.attach(carried["headers"])
    return Attachment(None, NOOP)


def _is_joined(carried: Carried) -> bool:
    """Say whether nothing is to be done: a user's own recording, or his not recording, holds."""
    if default.enabled() and default._tracer is not _state.tracer:
        return True
    if default.enabled() and default._tracer.run == carried["settings"].get("run"):
        return True
    return carried["since_ns"] <= _state.since_ns


def _join(carried: Carried) -> None:
    """Record into the run that a call came from."""
    with _state.lock:
        if _is_joined(carried):
            return
        _state.since_ns = carried["since_ns"]
        settings = dict(carried["settings"])
        if "ROLLSCOPE_ROLE" not in os.environ:
            settings["role"] = describe_ray().get("actor") or "worker"
        _state.tracer = default.init(**settings)
