"""Trajectories, the dicts of arrays that training takes: whether one is sound, and joining many.

How a workflow makes one is told in `transcript`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeGuard

from rollscope.rollout.arrays import Array, arrays_of, is_array

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ["Trajectory", "check_trajectory_format", "concat_padded", "is_interactions"]

Trajectory = dict[str, Any]
"""Arrays by name, the first dimension of each counting samples, and whatever else is worth it."""

MULTI_MODAL = "multi_modal_input"

_REQUIRED = ("input_ids", "attention_mask")
_PADDING = {"versions": -1}
"""With what is padded, if not 0: version 0 would read as the oldest policy there is."""

_log = logging.getLogger("rollscope")


def is_interactions(data: object) -> TypeGuard[dict[str, Any]]:
    """Say whether a dict holds interactions, which turn themselves into arrays later."""
    return (
        isinstance(data, dict)
        and bool(data)
        and all(hasattr(value, "to_tensor_dict") for value in data.values())
    )


def check_trajectory_format(
    data: object,
    batch_size: int | None = None,
    expected_keys: Collection[str] | None = None,
    logger: logging.Logger | None = None,
) -> bool:
    """Check what a workflow returned; true if it can be trained on, or is no trajectory at all.

    Args:
        data: None, a dict of interactions, or a dict of arrays.
        batch_size: How many samples there must be.
        expected_keys: What must be there; more is fine.
        logger: Told what is odd but no error.

    Raises:
        ValueError: It cannot be used; the message says why.
    """
    if data is None or is_interactions(data):
        return True
    if not isinstance(data, dict):
        raise ValueError(f"Expected data to be None or dict, got {type(data)}")
    if not data:
        raise ValueError("Data dict cannot be empty")
    batch, length = _checked_size(data, batch_size)
    for key, value in data.items():
        _check_value(key, value, batch, length, logger or _log)
    missing = sorted(set(expected_keys or ()) - data.keys())
    if missing:
        raise ValueError(
            f"Inconsistent keys compared to expected: expected {sorted(expected_keys or ())}, "
            f"but {missing} are missing."
        )
    return True


def _checked_size(data: Mapping[str, Any], batch_size: int | None) -> tuple[int, int]:
    missing = [key for key in _REQUIRED if key not in data]
    if missing:
        raise ValueError(f"Missing required keys in tensor data: {missing}")
    input_ids = data["input_ids"]
    if not is_array(input_ids) or input_ids.ndim != 2:
        found = f"{input_ids.ndim}D" if is_array(input_ids) else f"{type(input_ids)}"
        raise ValueError(
            f"Expected 2D tensors with shape [batch_size, max_seqlen], got {found} as input_ids"
        )
    batch, length = input_ids.shape
    if batch_size is not None and batch != batch_size:
        raise ValueError(f"Expected batch size {batch_size}, got {batch}")
    return batch, length


def _check_value(key: str, value: object, batch: int, length: int, logger: logging.Logger) -> None:
    if is_array(value):
        shape = list(value.shape)
        if shape[:2] != [batch, length][: max(len(shape), 1)]:
            logger.warning(
                "%s has shape %s, but input_ids has %s; is the first dimension its samples?",
                key,
                shape,
                [batch, length],
            )
    elif key == MULTI_MODAL:
        _check_multi_modal(value)
    else:
        size = len(value) if hasattr(value, "__len__") else None
        logger.info("%s is no tensor but a %s of length %s", key, type(value).__name__, size)


def _check_multi_modal(value: object) -> None:
    if not (isinstance(value, list) and value and all(isinstance(part, dict) for part in value)):
        raise ValueError("multi_modal_input should be a non-empty list of dicts")
    if not all("pixel_values" in part for part in value):
        raise ValueError("multi_modal_input should at least contain the `pixel_values` field.")


def concat_padded(trajectories: Sequence[Trajectory]) -> Trajectory:
    """Join trajectories into one with the samples of all, shorter ones padded on the right.

    Padding is 0, so attention and loss masks leave it out; that of `versions` is -1, as on prompt
    tokens. Lists are joined, of any other value the first is kept.

    Raises:
        ValueError: The trajectories do not have the same keys, or one name stands for arrays with
            different numbers of dimensions.
    """
    if not trajectories:
        return {}
    first, *others = trajectories
    for other in others:
        if other.keys() != first.keys():
            odd = sorted(first.keys() ^ other.keys())
            raise ValueError(f"trajectories with different keys cannot be joined: {odd}")
    return {key: _join(key, [part[key] for part in trajectories]) for key in first}


def _join(key: str, values: list[Any]) -> Any:  # noqa: ANN401  (a value of any kind may be there)
    first = values[0]
    if isinstance(first, list):
        return [item for value in values for item in value]
    if is_array(first) and first.ndim:
        return _join_arrays(key, values)
    return first


def _join_arrays(key: str, arrays: list[Array]) -> Array:
    if len({array.ndim for array in arrays}) > 1:
        raise ValueError(f"{key} has {sorted({array.ndim for array in arrays})} dimensions")
    rows = sum(array.shape[0] for array in arrays)
    inner = [max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays), strict=True)]
    joined = arrays_of(arrays[0]).full([rows, *inner], _PADDING.get(key, 0), arrays)
    row = 0
    for array in arrays:
        size, *rest = array.shape
        joined[(slice(row, row + size), *map(slice, rest))] = array
        row += size
    return joined
