"""Claims that are attributes here and methods in AReaL, whose code calls them."""

__all__ = ["Claim"]


class Claim(int):
    """True or false, also when it is called."""

    def __call__(self) -> bool:
        """Say it."""
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))
