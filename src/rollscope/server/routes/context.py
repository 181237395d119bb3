"""What every route has at hand: the library, the run of the address, checked parameters."""

from collections.abc import Iterable
from typing import Final

from starlette.requests import Request

from rollscope.server.failures import Failure
from rollscope.server.library import Library
from rollscope.server.opened import OpenRun

__all__ = ["given_parameters", "library_of", "read_whole", "run_of"]

_MOST_CHARACTERS: Final = 4096
_LARGEST: Final = 2**63 - 1


def library_of(request: Request) -> Library:
    """Give the runs that the server shows."""
    library: Library = request.app.state.library
    return library


async def run_of(request: Request) -> OpenRun:
    """Give the run that the address names.

    Raises:
        Failure: There is none.
    """
    return await library_of(request).open(request.path_params["run"])


def given_parameters(request: Request, known: Iterable[str] | None = None) -> dict[str, str]:
    """Give the parameters of the address.

    Args:
        request: The request.
        known: Which there may be; anything if not given, where others look at them.

    Raises:
        Failure: One is given twice, is too long, or unknown.
    """
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Failure(400, f"The parameter {name[:40]!r} is given twice.", "Give it once.")
        if len(value) > _MOST_CHARACTERS:
            raise Failure(400, f"The parameter {name[:40]!r} is too long.", "Give less.")
        given[name] = value
    if known is not None and (unknown := sorted(given.keys() - set(known))):
        listed = ", ".join(known) or "none"
        raise Failure(400, f"There is no parameter {unknown[0][:40]!r}.", f"There are: {listed}.")
    return given


def read_whole(
    given: dict[str, str], name: str, default: int | None, *, least: int = 0, most: int = _LARGEST
) -> int:
    """Read a whole number.

    Raises:
        Failure: It is missing, or is none.
    """
    text = given.get(name, "")
    if not text and default is not None:
        return default
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
    if not is_number or not least <= int(text) <= most:
        raise Failure(
            400,
            f"The parameter {name!r} is {text[:40]!r}.",
            f"Give a whole number from {least:,} to {most:,}.",
        )
    return int(text)
