"""The demo's replicas as one engine: whoever has the least to do answers, the dead are left out."""

import http.client
from collections.abc import Sequence
from typing import Any, Final

import msgspec

import rollscope as rs
from rollscope.demo.children import Child
from rollscope.demo.policy import MODEL
from rollscope.errors import CommandError
from rollscope.rollout import ModelRequest, ModelResponse
from rollscope.rollout.client import EndpointUnavailable, HttpEngine, RetryRule

__all__ = ["Replicas"]

_WEIGHTS_S: Final = 10.0


class _Replica(msgspec.Struct):
    child: Child
    engine: HttpEngine
    running: int = 0
    is_up: bool = True


class Replicas:
    """What rollouts generate with."""

    def __init__(self, children: Sequence[Child]) -> None:
        """Take replicas that are ready."""
        self.version = 0
        self._replicas = [
            _Replica(
                child,
                HttpEngine(
                    f"http://127.0.0.1:{child.port}/v1",
                    model=MODEL,
                    version=self.get_version,
                    retry=RetryRule(max_retries=0),
                ),
            )
            for child in children
        ]

    def get_version(self) -> int:
        """Say which weights the replicas have."""
        return self.version

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        """Have a replica answer; if it is gone, another.

        Raises:
            CommandError: None is left.
        """
        while True:
            replica = self._least_busy()
            replica.running += 1
            try:
                rs.current().set(replica=replica.child.name)
                return await replica.engine.agenerate(req)
            except EndpointUnavailable:
                self._leave_out(replica)
            finally:
                replica.running -= 1

    def publish(self, weights: bytes, version: int) -> None:
        """Give all replicas new weights; generation goes on with them."""
        for replica in self._up():
            with rs.span("weights.transfer", category="comm", replica=replica.child.name) as span:
                span.set(bytes=len(weights))
                try:
                    _post(replica.child.port, f"/weights/{version}", weights)
                except OSError:
                    self._leave_out(replica)
        self.version = version
        rs.event("weights.published", version=version)

    async def close(self) -> None:
        """Close the connections."""
        for replica in self._replicas:
            await replica.engine.close()

    def _up(self) -> list[_Replica]:
        up = [replica for replica in self._replicas if replica.is_up]
        if not up:
            raise CommandError("no replica of the demo is left")
        return up

    def _least_busy(self) -> _Replica:
        return min(self._up(), key=lambda replica: replica.running)

    def _leave_out(self, replica: _Replica) -> None:
        if replica.is_up:
            replica.is_up = False
            rs.event("replica.lost", replica=replica.child.name)


def _post(port: int, path: str, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WEIGHTS_S)
    try:
        headers: dict[str, Any] = {"Content-Type": "application/octet-stream", **rs.inject()}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise OSError(f"the replica answered {answer.status} to new weights")
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
