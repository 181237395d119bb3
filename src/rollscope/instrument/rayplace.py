"""Where in a Ray cluster this process stands, for the header of its log.

Ray is looked for among what is loaded already: a program that does not use it does not load it.
"""

import sys
from contextlib import suppress

__all__ = ["describe_ray"]


def describe_ray() -> dict[str, str]:
    """Give `node`, `job` and `worker`, and in an actor `actor` (its class) and `actor_name`.

    Nothing is given outside of Ray, and nothing that cannot be found out.
    """
    ray = sys.modules.get("ray")
    found: dict[str, str] = {}
    with suppress(Exception):
        if ray is None or not ray.is_initialized():
            return found
        context = ray.get_runtime_context()
        found["node"] = context.get_node_id()
        found["job"] = context.get_job_id()
        found["worker"] = context.get_worker_id()
        if context.get_actor_id():
            found["actor_name"] = context.get_actor_name() or ""
            # "module.Class.method" of what runs now
            found["actor"] = (context.get_task_function_name() or "").split(".")[-2]
    return {name: value for name, value in found.items() if value}
