"""Sending: the calls of this process carry its context, where the other side takes it up.

Ray has no hook for that, so the one method behind every way of calling, `_remote`, is replaced: of
remote functions, of actor methods and of actor classes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.rayhub.access import need_ray
from rollscope.rayhub.context import Carried, arrive, take_along
from rollscope.rayhub.following import (
    KEYWORD,
    accepts,
    follow_actor_class,
    follow_remote_function,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.instrument.propagation import Attachment

__all__ = ["arrive_at_call", "carry_calls", "install", "uninstall"]

_OWN: Final = ("rollscope.", "ray.")
"""What is of these packages is never followed of itself."""

_replaced: list[tuple[type, Any]] = []
_follows_all = False


def install() -> None:
    """Have every remote call of this process carry the context, and be followed where it runs.

    Call it in the driver, once; workers do the same from the first call on that they get. Actors
    that exist already are not followed. As `worker_process_setup_hook` of a runtime environment it
    also serves workers whose callers have not installed it.

    Raises:
        MissingExtra: Ray is not installed.
    """
    global _follows_all
    carry_calls()
    _follows_all = True


def uninstall() -> None:
    """Have calls carry nothing any more; what is followed stays so."""
    global _follows_all
    _follows_all = False
    while _replaced:
        owner, original = _replaced.pop()
        owner._remote = original  # type: ignore[attr-defined]


def carry_calls() -> None:
    """Have calls of what is followed carry the context."""
    if _replaced:
        return
    ray = need_ray()
    for owner, prepare in (
        (ray.remote_function.RemoteFunction, _prepare_function),
        (ray.actor.ActorClass, _prepare_actor),
        (ray.actor.ActorMethod, _prepare_method),
    ):
        _replaced.append((owner, owner._remote))
        owner._remote = _carrying(owner._remote, prepare)


def arrive_at_call(carried: Carried) -> Attachment:
    """Go on where a call came from, and have the calls made from here carry on."""
    with guarded("carrying on over Ray"):
        if carried.get("follow_all"):
            install()
        else:
            carry_calls()
    return arrive(carried)


def _carrying(remote: Any, prepare: Callable[[Any], Any]) -> Any:  # noqa: ANN401  (Ray's)
    @functools.wraps(remote)
    def carrying(
        self: Any,  # noqa: ANN401
        args: Any = None,  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
        *rest: Any,
        **options: Any,
    ) -> Any:  # noqa: ANN401
        if default._tracer._recorder is not None or _follows_all:
            with guarded("carrying the context over Ray"):
                if accepts(prepare(self)):
                    carried = take_along(follow_all=_follows_all)
                    if carried is not None:
                        kwargs = {**(kwargs or {}), KEYWORD: carried}
        return remote(self, args, kwargs, *rest, **options)

    return carrying


def _prepare_function(remote: Any) -> Any:  # noqa: ANN401
    """Give the signature of a remote function, once it is followed."""
    if _is_client():
        return None
    if _follows_all and _is_foreign(remote._function):
        follow_remote_function(remote)
    signature = getattr(remote._function, "__signature__", None)
    return None if signature is None else signature.parameters.values()


def _prepare_actor(actor_class: Any) -> Any:  # noqa: ANN401
    """Give the signature of an actor's constructor, once it is followed."""
    meta = actor_class.__ray_metadata__
    if meta.is_cross_language or _is_client():
        return None
    if _follows_all and _is_foreign(meta.modified_class):
        follow_actor_class(actor_class)
    return meta.method_meta.signatures.get("__init__")


def _prepare_method(method: Any) -> Any:  # noqa: ANN401
    """Give the signature of an actor's method, as its handle has it."""
    return method._actor._ray_method_signatures.get(method._method_name)


def _is_foreign(target: Any) -> bool:  # noqa: ANN401
    return not f"{target.__module__}.".startswith(_OWN)


def _is_client() -> bool:
    """Say whether this is a Ray client, whose calls are made elsewhere and checked differently."""
    from ray._private import client_mode_hook

    should_convert: Callable[[], bool] = client_mode_hook.client_mode_should_convert
    return should_convert()
