"""The arrays that trajectories are made of: torch tensors where torch is installed, else numpy's.

Neither is needed to import this; the one that is used is loaded when the first array is made. What
is checked or joined keeps the kind that it came with.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeGuard

from rollscope.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Array", "ArrayKind", "Arrays", "Dtype", "arrays_of", "choose_arrays", "is_array"]

ArrayKind = Literal["torch", "numpy"]
Dtype = Literal["int32", "int64", "float32", "bool"]


class Array(Protocol):
    """What is asked of an array, whoever makes it."""

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""

    @property
    def shape(self) -> Sequence[int]:
        """How long each dimension is."""

    @property
    def dtype(self) -> Any:  # noqa: ANN401  (torch's and numpy's have nothing in common)
        """What it holds."""

    def __setitem__(self, where: Any, value: Any, /) -> None:  # noqa: ANN401  (as libraries do)
        """Fill a part."""


class Arrays(Protocol):
    """One library of arrays."""

    kind: ArrayKind
    tensor_format: str
    """What Hugging Face processors call it."""

    def array(self, values: Any, dtype: Dtype) -> Array:  # noqa: ANN401  (numbers, nested at will)
        """Make an array of numbers."""

    def full(self, shape: Sequence[int], fill: float, alike: Sequence[Array]) -> Array:
        """Make an array of one value, of a type that holds the values of others."""


def is_array(value: object) -> TypeGuard[Array]:
    """Say whether a value is an array of any library."""
    return hasattr(value, "ndim") and hasattr(value, "shape")


def choose_arrays(kind: ArrayKind | None = None) -> Arrays:
    """Give the library to make arrays with.

    Args:
        kind: Which one; if not given, the one chosen last, at first torch if it is installed.

    Raises:
        MissingExtra: The library, or both, are not installed.
    """
    global _chosen
    if kind is not None or _chosen is None:
        _chosen = _load(_best_kind() if kind is None else kind)
    return _chosen


def arrays_of(value: Array) -> Arrays:
    """Give the library that an array belongs to; numpy for those of neither."""
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    return _load("torch" if is_tensor else "numpy")


def _best_kind() -> ArrayKind:
    return "torch" if "torch" in sys.modules or importlib.util.find_spec("torch") else "numpy"


@functools.cache
def _load(kind: ArrayKind) -> Arrays:
    try:
        return _Torch() if kind == "torch" else _Numpy()
    except ImportError as error:
        raise MissingExtra(
            f"{kind} is not installed, and trajectories are made of its arrays; "
            "install torch, or numpy with `pip install rollscope[rollout]`"
        ) from error


class _Numpy:
    kind: ArrayKind = "numpy"
    tensor_format = "np"

    def __init__(self) -> None:
        self._numpy = importlib.import_module("numpy")

    def array(self, values: Any, dtype: Dtype) -> Array:  # noqa: ANN401  (numbers, nested at will)
        made: Array = self._numpy.array(values, dtype=dtype)
        return made

    def full(self, shape: Sequence[int], fill: float, alike: Sequence[Array]) -> Array:
        dtype = self._numpy.result_type(*(other.dtype for other in alike))
        made: Array = self._numpy.full(tuple(shape), fill, dtype=dtype)
        return made


class _Torch:
    kind: ArrayKind = "torch"
    tensor_format = "pt"

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")

    def array(self, values: Any, dtype: Dtype) -> Array:  # noqa: ANN401  (numbers, nested at will)
        made: Array = self._torch.as_tensor(values, dtype=getattr(self._torch, dtype))
        return made

    def full(self, shape: Sequence[int], fill: float, alike: Sequence[Any]) -> Array:
        dtypes = (other.dtype for other in alike)
        dtype = functools.reduce(self._torch.promote_types, dtypes)
        made: Array = alike[0].new_full(tuple(shape), fill, dtype=dtype)
        return made


_chosen: Arrays | None = None
