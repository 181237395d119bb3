"""The monitoring stack: finds Prometheus and its kin, configures, starts and watches them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollscope.stack.updating import ConfigUpdate, NodeUpdate, update_prometheus_config

__all__ = ["ConfigUpdate", "NodeUpdate", "update_prometheus_config"]


def __getattr__(name: str) -> object:
    """Load what talks to Prometheus when it is used: every start of the command line comes here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rollscope.stack import updating

    return getattr(updating, name)
