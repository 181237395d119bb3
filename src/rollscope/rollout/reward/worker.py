"""The program of a worker process: takes calls from a socket, one at a time, and answers them.

The main thread runs the reward functions, since some of them set alarms, which only that thread
may. A second thread reads the socket: when the owner is gone, the process ends even if a function
never returns.
"""

import inspect
import os
import pickle
import queue
import socket
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from rollscope.rollout.reward.function import HostMain, find_function, unpack
from rollscope.rollout.reward.wire import HEADER_BYTES, Answer, encode_answer, frame, frame_length

__all__ = ["serve"]

_MOST_FUNCTIONS: Final = 32
"""How many functions stay loaded; a program that makes new ones all the time must not fill us."""


def serve(descriptor: int, main: HostMain) -> None:
    """Answer calls until the other end of the socket is closed.

    Args:
        descriptor: Of the socket, inherited from the owner.
        main: How to load the owner's main module, should a function live there.
    """
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)  # a program that a function starts must not keep us open
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_calls, args=(connection, calls), daemon=True).start()
    functions: OrderedDict[bytes, Callable[..., Any]] = OrderedDict()
    while True:
        _answer(connection, calls.get(), functions, main)


def _read_calls(connection: socket.socket, calls: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            calls.put(_read(connection, frame_length(_read(connection, HEADER_BYTES))))
    finally:
        os._exit(0)


def _read(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _answer(
    connection: socket.socket,
    request: bytes,
    functions: OrderedDict[bytes, Callable[..., Any]],
    main: HostMain,
) -> None:
    def say(answer: Answer) -> None:
        connection.sendall(frame(encode_answer(answer)))

    try:
        packed, arguments = pickle.loads(request)  # noqa: S301  (made by our own owner)
        function = _loaded(packed, functions, main)
        args, kwargs = unpack(arguments, main)
    except BaseException:
        say(Answer("unusable", detail=traceback.format_exc()))
        return
    say(Answer("running"))
    try:
        answer = Answer("ok", _reward(function(*args, **kwargs)))
    except BaseException:  # SystemExit too: it is the function's, not ours
        answer = Answer("error", detail=traceback.format_exc())
    say(answer)


def _loaded(
    packed: bytes, functions: OrderedDict[bytes, Callable[..., Any]], main: HostMain
) -> Callable[..., Any]:
    if packed not in functions:
        functions[packed] = find_function(packed, main)
    functions.move_to_end(packed)
    if len(functions) > _MOST_FUNCTIONS:
        functions.popitem(last=False)
    return functions[packed]


def _reward(result: Any) -> float:  # noqa: ANN401  (whatever a reward function returns)
    if inspect.iscoroutine(result):
        import asyncio  # most reward functions are plain

        result = asyncio.run(result)
    try:
        return float(result)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a reward function must return a number, not {type(result).__name__}"
        ) from error
