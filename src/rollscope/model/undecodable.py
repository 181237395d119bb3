"""What decoding raises on bytes that are not what they should be."""

from typing import Final

import msgspec

__all__ = ["UNDECODABLE"]

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""msgspec leaves text that is no UTF-8, and nesting without end, to errors of Python's own."""
