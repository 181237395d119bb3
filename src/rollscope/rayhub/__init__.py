"""Recording across a Ray cluster: a hub that keeps frames, a sink to it, context across calls.

`sink="ray"` finds its sink here by name. `install` and `follow` have the current span go along with
remote calls.
"""

from rollscope.rayhub.following import follow
from rollscope.rayhub.sending import install, uninstall

__all__ = ["follow", "install", "uninstall"]
