"""What the stand-in knows in this process between `init` and `finish`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument import default
from rollscope.instrument.calls import COUNT, GAUGE, OBSERVE

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.integrations.rl_insight.configuring import MonitorConfig
    from rollscope.integrations.rl_insight.endpoint import Endpoint
    from rollscope.integrations.rl_insight.sessions import Sessions

__all__ = ["COUNT", "GAUGE", "OBSERVE", "Active", "recorder"]


class Active:
    """One `init` that has not been finished."""

    __slots__ = ("config", "endpoint", "is_owner", "labels", "sessions")

    def __init__(
        self,
        config: MonitorConfig,
        labels: dict[str, str],
        endpoint: Endpoint | None,
        sessions: Sessions,
        *,
        is_owner: bool,
    ) -> None:
        """Keep it.

        Args:
            config: What holds.
            labels: Put on everything.
            endpoint: Shows metrics to Prometheus.
            sessions: Those of agent loops.
            is_owner: Whether it began the recording, and is to end it.
        """
        self.config = config
        self.labels = labels
        self.endpoint = endpoint
        self.sessions = sessions
        self.is_owner = is_owner

    def add(
        self,
        code: int,
        name: str,
        value: Any,  # noqa: ANN401  (what a program calls a number)
        documentation: str,
        labels: dict[str, Any],
    ) -> None:
        """Take one call of a metric."""
        found = default._tracer._recorder
        if found is None:
            return
        if type(value) is not float and type(value) is not int:
            value = _as_number(value)
        labels.update(self.labels)
        found.add_call((code, name, value, labels))
        if self.endpoint is not None:
            self.endpoint.add((code, name, value, labels, documentation))


current: Active | None = None
"""None: nothing is recorded, and every call returns at once."""


def recorder() -> Recorder | None:
    """Give what records, while the stand-in is on."""
    return None if current is None else default._tracer._recorder


def _as_number(value: Any) -> Any:  # noqa: ANN401
    """Make a number of what can be one, such as a tensor; leave the rest to be refused."""
    try:
        return float(value)
    except Exception:  # its conversion is the host's code
        return value
