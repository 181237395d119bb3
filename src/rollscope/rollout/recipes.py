"""What is to be done with data items: resolved once, for many of them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rollscope.rollout.accept import resolve_accept
from rollscope.rollout.resolve import resolve_workflow
from rollscope.rollout.samples import Episode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.rollout.loader import Drawn

__all__ = ["Recipe"]


class Recipe:
    """A workflow, a filter, and how many samples to make.

    Args:
        workflow: A workflow or what stands for one.
        workflow_kwargs: What to make a workflow of a class with.
        should_accept_fn: A function, an import path to one, or None.
        should_accept: The old name of that.
        group_size: How many samples of each item.
    """

    def __init__(
        self,
        workflow: object,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept_fn: Any = None,  # noqa: ANN401  (checked where it is resolved)
        should_accept: Any = None,  # noqa: ANN401  (as above)
        group_size: int = 1,
    ) -> None:
        if should_accept is not None:
            warnings.warn(
                "should_accept is called should_accept_fn now", DeprecationWarning, stacklevel=3
            )
        if group_size < 1:
            raise ValueError(f"group_size must be above zero, not {group_size}")
        self._workflow = resolve_workflow(workflow, workflow_kwargs)
        self._accept = resolve_accept(
            should_accept if should_accept_fn is None else should_accept_fn
        )
        self._size = group_size

    def episode(
        self,
        data: Any,  # noqa: ANN401  (the item is the host's)
        *,
        is_eval: bool = False,
        owner: object | None = None,
        drawn: Drawn | None = None,
    ) -> Episode:
        """Make an episode of an item, without an id as yet."""
        return Episode(
            data,
            self._workflow,
            self._accept,
            self._size,
            is_eval=is_eval,
            owner=owner,
            drawn=drawn,
        )
