"""The Ray sink: frames as calls of the hub actor.

Ray may come after the recorder, go before it, or be started again; until it is there, frames wait
in the spool like those of a server that is away. When a program ends the cluster that it had
started, the hub is gone for good: then what is left on this host is kept without it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.collect.keeping import Keeper
from rollscope.errors import IngestError
from rollscope.instrument.sinks.collector import Busy, CollectorSink, Delivery, Refused
from rollscope.instrument.sinks.spoolhome import default_home, find_spools
from rollscope.rayhub.access import (
    RayAway,
    after_own_cluster,
    before_shutdown,
    guard_shutdown,
    is_driver,
    is_initialised,
    using_ray,
)
from rollscope.rayhub.hub import NAMESPACE, HubAnswer, find_hub, hub_address
from rollscope.rayhub.sweeping import sweep_up

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rollscope.instrument.sinks import Opening

__all__ = ["RaySink"]

_ANSWER_S: Final = 30.0
_SLICE_S: Final = 0.1
"""Between looks whether Ray is still there."""
_CLOCK_EVERY_S: Final = 5.0
_LAST_CALL_S: Final = 2.0
"""How long `ray.shutdown` waits for what was recorded before."""
_LOOK_S: Final = 0.01
_DRAIN_S: Final = 0.3
"""After which all that a worker has recorded is in its spool; `drain_s` and something to spare."""
_RAY_COMES_S: Final = 15.0
"""For so long it is no trouble that Ray is not there: starting a cluster takes its time."""
_RETRY_S: Final = 0.2
_LATER_S: Final = 5.0
"""Longer than a sink that closes has time, so that it does not wait for it."""
_DYING_S: Final = 3.0
"""How long the workers of a cluster may take to die."""

_hubless: set[str] = set()
"""Directories whose hub went with the cluster that this process had started."""


class RaySink(CollectorSink):
    """Sends frames to the hub of a Ray cluster, which keeps them on the head.

    Args:
        address: `"ray"`.
        spool_dir: As for `CollectorSink`.
        spool_mb: As for `CollectorSink`.

    Raises:
        MissingExtra: Ray is not installed.
    """

    gather_s = 0.2
    """A call takes a millisecond of CPU, however little it carries: half of it with Python's lock
    held, the rest in threads of Ray's."""

    def __init__(
        self, address: str = "ray", *, spool_dir: str | None = None, spool_mb: float = 1024.0
    ) -> None:
        guard_shutdown()  # now, so that at exit the recorder, which is watched later, ends first
        super().__init__(address, spool_dir=spool_dir, spool_mb=spool_mb)
        self._home = os.path.abspath(spool_dir or default_home())
        self._directory = ""
        self._hub: Any = None
        self._keeper: Keeper | None = None
        self._cut = threading.Event()
        self._clock: tuple[int, ...] = ()
        self._clock_due_s = 0.0
        self._missed_since_s: float | None = None
        self._is_closing = False

    def open(self, opening: Opening) -> None:
        """Make the spool of this process and begin to deliver; see `CollectorSink`."""
        self._directory = _absolute(opening.directory)
        self.address = hub_address(self._directory)
        super().open(opening)
        sink = weakref.ref(self)

        def send_what_waits() -> None:
            if (living := sink()) is not None:
                living._send_what_waits()

        before_shutdown(id(self), send_what_waits)
        address, directory, home = self.address, self._directory, self._home
        # It stays when this sink is closed, as a driver may do first.
        before_shutdown((directory, home), lambda: _let_workers_write(address, home))
        after_own_cluster((directory, home), lambda: _go_on_alone(directory, home))

    def close(self) -> None:
        """Deliver for a moment longer; what is left stays in the spool."""
        before_shutdown(id(self), None)
        self._is_closing = True
        super().close()
        self._is_closing = False

    def connect(self) -> None:
        """Find the hub, or make it."""
        self._cut.clear()
        self._clock, self._clock_due_s = (), 0.0
        if self._directory in _hubless and not is_initialised():
            self._keeper = Keeper(Path(self._directory))
            return
        _hubless.discard(self._directory)
        try:
            with using_ray() as ray:
                self._hub = find_hub(ray, self._directory)
        except RayAway as error:
            if self._is_closing:
                raise
            raise self._missed(str(error)) from None
        self._missed_since_s = None

    def _missed(self, why: str) -> Busy:
        """Be patient with a Ray that is not there; first without a word."""
        now_s = time.monotonic()
        if self._missed_since_s is None:
            self._missed_since_s = now_s
        is_late = now_s - self._missed_since_s >= _RAY_COMES_S
        return Busy(_LATER_S, why) if is_late else Busy(_RETRY_S)

    def disconnect(self) -> None:
        """Let go of the hub; a call that is under way in another thread fails."""
        self._cut.set()
        self._hub = None
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def abandon(self) -> None:
        """Let go of the parent's handle."""
        self._hub = None
        self._keeper = None

    def deliver(self, delivery: Delivery) -> None:
        """Have the hub keep frames; see `CollectorSink`."""
        if self._keeper is not None:
            self._keep(self._keeper, delivery)
            return
        is_own = delivery.process == self.process
        if is_own and time.monotonic() >= self._clock_due_s:
            self._compare_clocks(delivery)
        self._call(delivery, delivery.data, is_own=is_own)

    @staticmethod
    def _keep(keeper: Keeper, delivery: Delivery) -> None:
        if is_initialised():
            raise RayAway("Ray was started again")
        try:
            keeper.keep(*delivery)
        except IngestError as error:
            raise _trouble(str(error), error.retry_after_s) from error

    def _compare_clocks(self, delivery: Delivery) -> None:
        """Make a tiny call: how long a large one is under way says little of the clocks."""
        sent_ns = time.perf_counter_ns()
        answer = self._call(delivery, b"", is_own=True)
        back_ns = time.perf_counter_ns()
        self._clock = (sent_ns, answer.received_ns, answer.sent_ns, back_ns)
        self._clock_due_s = time.monotonic() + _CLOCK_EVERY_S

    def _call(self, delivery: Delivery, data: bytes, *, is_own: bool) -> HubAnswer:
        hub = self._hub
        if hub is None:
            raise RayAway("not connected")
        clock = (time.perf_counter_ns(), *self._clock) if is_own else ()
        with using_ray():
            coming = hub.keep.remote(
                delivery.run, delivery.tags, delivery.process, data, clock, self._home
            ).future()  # not `ray.get`, which blames asynchronous actors for blocking
        answer = self._wait(coming)
        if answer.refusal:
            raise _trouble(answer.refusal, answer.retry_after_s)
        return answer

    def _wait(self, coming: Future[HubAnswer]) -> HubAnswer:
        """Wait for an answer; Ray may go meanwhile, and we may be told to stop."""
        give_up_s = time.monotonic() + _ANSWER_S
        while not self._cut.is_set():
            try:
                return coming.result(_SLICE_S)
            except TimeoutError:
                if coming.done():  # Ray's own
                    raise
            with using_ray():  # which raises if it has gone
                if time.monotonic() >= give_up_s:
                    raise TimeoutError(f"the hub has not answered for {_ANSWER_S:g} s")
        raise RayAway("told to stop")

    def _send_what_waits(self) -> None:
        """Give the shipping thread a moment before Ray is gone."""
        now = self._now
        if now is None or self._hub is None:
            return
        deadline_s = time.monotonic() + _LAST_CALL_S
        while now.spool.waiting_bytes > 0 and time.monotonic() < deadline_s:
            now.shipper.hurry()
            time.sleep(_LOOK_S)


def _trouble(why: str, retry_after_s: float | None) -> Exception:
    return Refused(why) if retry_after_s is None else Busy(retry_after_s)


def _let_workers_write(address: str, home: str) -> None:
    """Wait, in a driver, until workers on this host have spooled what they recorded until now.

    Ray kills them when it ends; what lies in their spools is swept up afterwards.
    """
    if is_driver() and any(
        to.address == address and to.pid != os.getpid() for _, to in find_spools(home)
    ):
        time.sleep(_DRAIN_S)


def _go_on_alone(directory: str, home: str) -> None:
    _hubless.add(directory)
    sweep_up(hub_address(directory), directory, home, _DYING_S)


def _absolute(directory: str) -> str:
    """Make a directory absolute; the same for all of a job, wherever its workers stand."""
    if os.path.isabs(directory):
        return os.path.normpath(directory)
    here = os.path.abspath(directory)
    with suppress(Exception), using_ray() as ray:
        from ray.experimental import internal_kv

        key = f"dir {ray.get_runtime_context().get_job_id()} {os.path.normpath(directory)}"
        internal_kv._internal_kv_put(key, here.encode(), overwrite=False, namespace=NAMESPACE)
        known: bytes = internal_kv._internal_kv_get(key, namespace=NAMESPACE)
        return known.decode()
    return here
