"""Following: remote functions and actor methods that take up the context that calls carry.

A wrapper takes one more keyword and keeps it from the function it stands for. Its signature tells
callers that it may be sent, so nobody sends it to a function that would not know it. Wrappers are
pickled whole, not by name: where Rollscope is not installed they just call the function.
"""

from __future__ import annotations

import copy
import functools
import inspect
import uuid
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rollscope.rayhub.access import need_ray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KEYWORD", "accepts", "follow", "follow_actor_class", "follow_remote_function"]

T = TypeVar("T")

KEYWORD: Final = "_rollscope_context"
_MARK: Final = "__rollscope_followed__"
_PARAMETER: Final = inspect.Parameter(KEYWORD, inspect.Parameter.KEYWORD_ONLY, default=None)
_NOT_FOLLOWED: Final = frozenset({"__del__", "__ray_terminate__", "__ray_ready__", "__ray_call__"})


def follow(target: T) -> T:
    """Have a remote function or actor class take up the context of its callers.

    As a decorator it stands above or below `@ray.remote`; above is better, since then the function
    or class itself stays as it is. Calls that were made of it before are not affected.

    Args:
        target: What `ray.remote` gives, or what it is given.
    """
    from rollscope.rayhub.sending import carry_calls  # which knows us already

    ray = need_ray()
    carry_calls()
    if isinstance(target, ray.remote_function.RemoteFunction):
        follow_remote_function(target)
    elif isinstance(target, ray.actor.ActorClass):
        follow_actor_class(target)
    elif inspect.isclass(target):
        for name, method in _methods(target).items():
            setattr(target, name, method)
    elif inspect.isroutine(target):
        wrapped: T = _wrap(target)
        return wrapped
    else:
        raise TypeError(f"a remote function or an actor class can be followed, not {target!r}")
    return target


def accepts(signature: Any) -> bool:  # noqa: ANN401  (Ray keeps None, or a list of parameters)
    """Say whether a function with this signature, as Ray keeps it, takes our keyword."""
    return bool(signature) and any(parameter.name == KEYWORD for parameter in signature)


def follow_remote_function(remote: Any) -> None:  # noqa: ANN401
    """Have the function of a `RemoteFunction` wrapped, unless it is."""
    if remote._is_cross_language or getattr(remote._function, _MARK, False):
        return
    with remote._inject_lock:
        remote._function = _wrap(remote._function)
        remote._function_signature = None
        if remote._last_export_cluster_and_job is not None:
            # Workers know the bare function by its old id.
            remote._uuid = uuid.uuid4()
            remote._last_export_cluster_and_job = None


def follow_actor_class(actor_class: Any) -> None:  # noqa: ANN401
    """Have the methods of an `ActorClass` wrapped, unless they are."""
    meta = actor_class.__ray_metadata__
    if meta.is_cross_language or _MARK in vars(meta.modified_class):
        return
    ray = need_ray()
    wrapped = _methods(meta.modified_class)
    # Handles of actors that were made before share what is replaced here.
    method_meta = copy.copy(meta.method_meta)
    method_meta.methods = dict(method_meta.methods) | wrapped
    method_meta.signatures = dict(method_meta.signatures)
    for name, method in wrapped.items():
        setattr(meta.modified_class, name, method)
        parameters = list(inspect.signature(method).parameters.values())
        method_meta.signatures[name] = parameters[1:]
    setattr(meta.modified_class, _MARK, True)
    meta.method_meta = method_meta
    descriptor = meta.actor_creation_function_descriptor
    if meta.last_export_cluster_and_job is not None:
        descriptor = type(descriptor).from_class(meta.modified_class.__ray_actor_class__)
        meta.actor_creation_function_descriptor = descriptor
        meta.last_export_cluster_and_job = None
    ray.actor._ActorClassMethodMetadata._cache[descriptor] = method_meta


def _methods(of: type) -> dict[str, Any]:
    """Wrap the methods of a class, inherited ones too, that are not wrapped yet."""
    return {
        name: _wrap(method)
        for name, method in inspect.getmembers(of, inspect.isfunction)
        if name not in _NOT_FOLLOWED
        and not getattr(method, _MARK, False)
        and not isinstance(inspect.getattr_static(of, name), staticmethod)
    }


def _wrap(function: Any) -> Any:  # noqa: ANN401  (any callable, and one just like it)
    """Make a function of the same kind, since Ray goes by that, which takes our keyword too."""
    innermost = inspect.unwrap(function)
    signature = _extended(inspect.signature(innermost))
    if signature is None:
        return function
    wrapper = _wrapper_of(function, innermost)
    functools.update_wrapper(wrapper, function)
    # Ray looks for its options, and for the signature, on the innermost function only.
    vars(wrapper).update({**vars(innermost), **vars(function)})
    vars(wrapper).pop("__wrapped__", None)
    vars(wrapper).update({"__signature__": signature, _MARK: True})
    return wrapper


def _extended(signature: inspect.Signature) -> inspect.Signature | None:
    """Add our keyword; None if it is there, or there is no room for it."""
    parameters = list(signature.parameters.values())
    if KEYWORD in signature.parameters:
        return None
    is_open = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    parameters.insert(len(parameters) - is_open, _PARAMETER)
    return signature.replace(parameters=parameters)


def _wrapper_of(function: Any, innermost: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Make the wrapper; it and all it needs are local, so that they are pickled by value."""

    def enter(carried: Any) -> Any:  # noqa: ANN401
        from contextlib import nullcontext

        if carried is None:
            return nullcontext()
        try:
            from rollscope.rayhub.sending import arrive_at_call
        except ImportError:
            return nullcontext()
        return arrive_at_call(carried)

    def plain(*args: Any, _rollscope_context: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
        with enter(_rollscope_context):
            return function(*args, **kwargs)

    async def coroutine(*args: Any, _rollscope_context: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
        with enter(_rollscope_context):
            return await function(*args, **kwargs)

    def generator(*args: Any, _rollscope_context: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
        with enter(_rollscope_context):
            return (yield from function(*args, **kwargs))

    async def async_generator(*args: Any, _rollscope_context: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
        from contextlib import aclosing

        with enter(_rollscope_context):
            async with aclosing(function(*args, **kwargs)) as values:
                async for value in values:
                    yield value

    if inspect.isasyncgenfunction(innermost):
        return async_generator
    if inspect.isgeneratorfunction(innermost):
        return generator
    return coroutine if inspect.iscoroutinefunction(function) else plain
