"""How a reward function gets into another process: packed in one, found again in the other.

A function travels by name, an object that can be called by its pickled state. What the host program
defines in its main script is found by loading that script once more, under another name.
"""

import importlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, cast

from rollscope.rollout.imports import import_object

__all__ = ["HostMain", "find_function", "host_main", "pack_function", "unpack"]

HostMain = tuple[str | None, str | None]
"""Name and file of the host's main module; each None where there is none."""

_MAIN_ALIAS: Final = "__mp_main__"
"""The name that multiprocessing uses for it, which scripts may know already."""


def pack_function(function: Callable[..., Any] | str) -> bytes:
    """Make of a reward function what `find_function` turns into a function elsewhere.

    Args:
        function: A function, a picklable object that can be called, or an import path such as
            `"package.module.function"`.

    Raises:
        TypeError: It cannot be found or built in another process.
    """
    if isinstance(function, str):
        parts = function.replace(":", ".", 1).split(".")
        if len(parts) == 1 or not all(part.isidentifier() for part in parts):
            raise TypeError(
                f"the reward function {function!r} is not an import path; "
                'write it as "package.module.function"'
            )
        return pickle.dumps(function)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if not callable(function):
        raise TypeError(f"a reward function or its import path is needed, not a {name}")
    try:
        packed = pickle.dumps(function)
    except Exception as error:
        raise TypeError(
            f"the reward function {name} cannot be sent to another process ({error}); define it at "
            "the top level of a module, or give its import path"
        ) from error
    if _module_of(function) == "__main__" and host_main() == (None, None):
        raise TypeError(
            f"the reward function {name} was defined interactively, where another process cannot "
            "find it; put it into a module"
        )
    return packed


def find_function(packed: bytes, main: HostMain) -> Callable[..., Any]:
    """Give the function that was packed, importing what it needs."""
    found = unpack(packed, main)
    if isinstance(found, str):
        found = import_object(found)
    if not callable(found):
        raise TypeError(f"{found!r} cannot be called")
    return cast("Callable[..., Any]", found)


def host_main() -> HostMain:
    """Say how another process can load the main module of this one."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name, None
    file = getattr(main, "__file__", None)
    return None, file if file is not None and file.endswith(".py") else None


def unpack(data: bytes, main: HostMain) -> Any:  # noqa: ANN401  (whatever was pickled)
    """Read a pickle of the host, in which `__main__` means the host's."""
    return _HostUnpickler(io.BytesIO(data), main).load()


class _HostUnpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, main: HostMain) -> None:
        super().__init__(file)
        self._main = main

    def find_class(self, module: str, name: str, /) -> Any:  # noqa: ANN401  (as in the base class)
        """Look into the host's main module where the pickle says `__main__`."""
        if module != "__main__":
            return super().find_class(module, name)
        found: Any = _load_main(self._main)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _load_main(main: HostMain) -> ModuleType:
    if _MAIN_ALIAS in sys.modules:
        return sys.modules[_MAIN_ALIAS]
    name, file = main
    if name is not None:
        module = importlib.import_module(name)
    elif file is not None:
        spec = importlib.util.spec_from_file_location(_MAIN_ALIAS, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {file}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MAIN_ALIAS] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[_MAIN_ALIAS]
            raise
    else:
        raise ImportError("the program has no main module that could be loaded")
    sys.modules[_MAIN_ALIAS] = module
    return module


def _module_of(function: object) -> str:
    own = getattr(function, "__module__", None)
    return own if isinstance(own, str) else type(function).__module__
