"""Runs tasks on Ray actors, with the interface of `Runner`.

from rollscope.runner.ray import RayRunner

with RayRunner(actors=8, per_actor=64, resources={"CPU": 2}) as runner:
for item in data:
runner.submit(rollout, item)
for outcome in runner.wait(len(data)):
print(outcome.id, outcome.status, outcome.value)
"""

from rollscope.errors import PlacementTimeout
from rollscope.runner.ray.member import ActorReport
from rollscope.runner.ray.runner import RayRunner
from rollscope.runner.ray.values import StoredValue

__all__ = ["ActorReport", "PlacementTimeout", "RayRunner", "StoredValue"]
