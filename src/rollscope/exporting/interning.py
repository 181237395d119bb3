"""Names that are written once and then stand as numbers, as Perfetto's packets have them."""

from typing import Final

from rollscope.exporting.protowire import bytes_field, text_field, uint_field

__all__ = ["Interned"]

_MOST: Final = 20_000
"""Names kept of a kind; whatever else comes is written out, so that memory stays bounded."""


class Interned:
    """The names of one kind."""

    def __init__(self, field: int) -> None:
        """Begin without names.

        Args:
            field: Where InternedData holds names of this kind.
        """
        self._field = field
        self._known: dict[str, int] = {}

    def number_of(self, name: str, told: list[bytes]) -> int | None:
        """Give the number of a name, or None if it has to be written out.

        Args:
            name: The name.
            told: What the next packet has to tell is added here if the name is new.
        """
        number = self._known.get(name)
        if number is None and len(self._known) < _MOST:
            number = self._known[name] = len(self._known) + 1
            told.append(bytes_field(self._field, uint_field(1, number) + text_field(2, name)))
        return number
