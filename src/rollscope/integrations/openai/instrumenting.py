"""Wrapping the calls of one client, or of all, and taking the wrapping off again."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rollscope.errors import MissingExtra
from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.integrations.openai.calls import Call, may_be_told
from rollscope.integrations.openai.streams import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["instrument", "uninstrument"]

C = TypeVar("C")

_PLACES: Final = (("chat", "completions"), ("completions",), ("responses",))
"""Where a client keeps what can be asked."""
_CLASSES: Final = (
    ("openai.resources.chat.completions", "Completions"),
    ("openai.resources.completions", "Completions"),
    ("openai.resources.responses", "Responses"),
)
_CALLS: Final = ("create", "parse")
_ORIGINAL: Final = "_rollscope_original"


def instrument(client: C = None, *, propagate: bool | None = None) -> C:  # type: ignore[assignment]
    """Make each call of a client a phase `generate` of the session it is made in.

    Args:
        client: An `OpenAI` or `AsyncOpenAI`, or one that is made like them. Without one, every
            client of this process is meant, also those to come.
        propagate: Send the W3C headers of the phase along, so that spans of the engine join the
            session. If not given, they go to every server but those of OpenAI and Azure.

    Returns:
        The client.

    Raises:
        MissingExtra: Every client is meant, and the package `openai` is not installed.
        TypeError: It is no such client.
    """
    uninstrument(client)
    for owner in _owners(client):
        for name in _CALLS:
            if (original := getattr(owner, name, None)) is not None:
                resource = None if isinstance(owner, type) else owner
                setattr(owner, name, _wrap(_bare(original, resource), resource, propagate))
    return client


def uninstrument(client: object = None) -> None:
    """Leave the calls of a client, or of all, as they were.

    Args:
        client: As for `instrument`.
    """
    for owner in _owners(client):
        for name in _CALLS:
            found = vars(owner).get(name)
            original = getattr(found, _ORIGINAL, None)
            if original is None:
                continue
            if isinstance(owner, type):
                setattr(owner, name, original)
            else:
                delattr(owner, name)


def _owners(client: object) -> Iterator[Any]:
    """Give what has the calls: the resources of a client, or the classes of all."""
    if client is not None:
        found = [owner for place in _PLACES if (owner := _at(client, place)) is not None]
        if not found:
            raise TypeError(f"{type(client).__name__} has no chat.completions, as clients do")
        yield from found
        return
    for module_name, name in _CLASSES:
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise MissingExtra("openai is not installed: pip install openai") from error
        yield from (getattr(module, name), getattr(module, f"Async{name}"))


def _at(client: object, place: tuple[str, ...]) -> object:
    for name in place:
        client = getattr(client, name, None)
    return client


def _bare(function: Any, resource: object) -> Callable[..., Any]:  # noqa: ANN401
    """Give a call without the wrapping of its class, so that it is not recorded twice."""
    original = getattr(function, _ORIGINAL, None)
    if original is None or resource is None:
        return function  # type: ignore[no-any-return]
    return functools.partial(original, resource)


def _wrap(
    original: Callable[..., Any], resource: object, propagate: bool | None
) -> Callable[..., Any]:
    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        recorder = default._tracer._recorder
        if recorder is None:
            return None
        call = Call(recorder, kwargs)
        asked = resource if resource is not None else (args[0] if args else None)
        with guarded("adding headers to a request"):
            if may_be_told(asked) if propagate is None else propagate:
                call.add_headers(kwargs)
        return call

    def finish(call: Call, answer: Any) -> Any:  # noqa: ANN401
        stream = stand_in(answer, call)
        if stream is None:
            call.take_answer(answer)
            return answer
        call.step_aside()
        return stream

    if inspect.iscoroutinefunction(inspect.unwrap(_function_of(original))):

        async def asked_later(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            call = begin(args, kwargs)
            if call is None:
                return await original(*args, **kwargs)
            try:
                answer = await original(*args, **kwargs)
            except BaseException as error:
                call.fail(error)
                raise
            return finish(call, answer)

        wrapper: Callable[..., Any] = asked_later
    else:

        def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            call = begin(args, kwargs)
            if call is None:
                return original(*args, **kwargs)
            try:
                answer = original(*args, **kwargs)
            except BaseException as error:
                call.fail(error)
                raise
            return finish(call, answer)

        wrapper = asked
    functools.update_wrapper(wrapper, _function_of(original))
    setattr(wrapper, _ORIGINAL, original)
    return wrapper


def _function_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.func if isinstance(function, functools.partial) else function
