"""What a pool and a worker process say to each other, and how it is framed on the socket."""

import pickle
import struct
from typing import Any, Final, Literal

import msgspec

__all__ = [
    "HEADER_BYTES",
    "Answer",
    "decode_answer",
    "encode_answer",
    "encode_call",
    "frame",
    "frame_length",
]

_HEADER: Final = struct.Struct("!Q")
HEADER_BYTES: Final = _HEADER.size
_MOST_DETAIL: Final = 4_000


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a worker says about a call.

    `running` comes first, once the function is loaded; then one of the others.
    """

    kind: Literal["running", "ok", "error", "unusable"]
    """`unusable`: the function or its arguments could not be loaded, so trying again is no use."""
    reward: float = 0.0
    detail: str = ""


_decoder: Final = msgspec.msgpack.Decoder(Answer)


def frame(body: bytes) -> bytes:
    """Put the length before a message."""
    return _HEADER.pack(len(body)) + body


def frame_length(header: bytes) -> int:
    """Give the length of the message that follows a header."""
    (length,) = _HEADER.unpack(header)
    return int(length)


def encode_call(function: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Make the message that asks for a reward.

    Raises:
        TypeError: An argument cannot be sent to another process.
    """
    try:
        return pickle.dumps((function, pickle.dumps((args, kwargs))))
    except Exception as error:
        raise TypeError(
            f"an argument of the reward function cannot be sent to another process ({error}); "
            "give it plain values"
        ) from error


def encode_answer(answer: Answer) -> bytes:
    """Make the message of an answer; the end of a long detail matters most and is kept."""
    if len(answer.detail) > _MOST_DETAIL:
        answer = msgspec.structs.replace(answer, detail="…" + answer.detail[-_MOST_DETAIL:])
    return msgspec.msgpack.encode(answer)


def decode_answer(body: bytes) -> Answer:
    """Read the message of an answer."""
    return _decoder.decode(body)
