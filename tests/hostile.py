"""Objects that a host program might hand over and that must not be asked anything."""

from typing import Any


class Hostile:
    """Complains whatever is asked of it: its text, its length, its value, an attribute."""

    def _refuse(self, *args: object) -> Any:
        raise AssertionError("the host's code was run")

    __repr__ = __str__ = __len__ = __iter__ = __bool__ = _refuse
    __int__ = __float__ = __index__ = __hash__ = __getitem__ = _refuse
    __eq__ = __lt__ = _refuse

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the host's code was run for {name}")


class Proxy(Hostile):
    """Fails even to tell its class, as lazy proxies do outside of their request."""

    @property  # type: ignore[misc]  # object's can be set, this one cannot
    def __class__(self) -> Any:
        raise RuntimeError("working outside of context")
