"""Doing the same thing on every node of a Ray cluster."""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["on_every_node"]

W = TypeVar("W")
R = TypeVar("R")


def on_every_node(
    work: Callable[[W], R], wanted: W, timeout_s: float
) -> tuple[str, list[tuple[str, R | str]]]:
    """Have every living node do it, all at once.

    Args:
        work: What to do; a function of a module that the nodes have too.
        wanted: What it gets.
        timeout_s: How long all of it may take.

    Returns:
        Why nothing was done, if there is no Ray; and for each node what came of it, or what went
        wrong there.
    """
    try:
        import ray
    except ImportError:
        return "Ray is not installed; this node alone is looked after", []
    if not ray.is_initialized():
        return "Ray is not running in this program; this node alone is looked after", []
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(work)
    asked: dict[Any, str] = {}
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ref = task.options(scheduling_strategy=here).remote(wanted)
            asked[ref] = str(node.get("NodeManagerHostname") or node["NodeID"])
    done, late = ray.wait(list(asked), num_returns=len(asked), timeout=timeout_s)
    given: list[tuple[str, R | str]] = [(asked[ref], _result(ray, ref)) for ref in done]
    for ref in late:
        ray.cancel(ref, force=True)
        given.append((asked[ref], f"did not answer within {timeout_s:g} s"))
    return "", given


def _result(ray: Any, ref: Any) -> Any:  # noqa: ANN401  (Ray is not there to type it)
    try:
        return ray.get(ref)
    except ray.exceptions.RayError as error:
        return f"failed: {str(error).strip().splitlines()[-1]}"
