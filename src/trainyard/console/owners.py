"""Check that the pods behind a TensorBoard belong to the project's Deployment.

A Service selects pods by a label, which any user who may run a Job could set on a pod. The owners of a pod are set by
the cluster's controllers.
"""

from __future__ import annotations

from typing import Any

from ..core.clock import CLOCK, Clock
from ..core.untrusted import at, is_name, items
from ..kube.api import KubeError
from ..trainings.names import TENSORBOARD_LABEL
from ..trainings.tensorboard import tensorboard_name
from .api import Client
from .sessions import Session

GOOD_SECONDS = 20.0
MOST = 1000
"""Maximum number of cached claims."""


class Owners:
    """The owner check for pods of claims, made at most once in `GOOD_SECONDS` for each claim."""

    def __init__(self, client: Client, clock: Clock = CLOCK) -> None:
        self._client, self._clock = client, clock
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}

    async def foreign(self, session: Session, namespace: str, claim: str) -> str:
        """Return the name of a pod that has the label of a claim but not its Deployment; empty if there is none.

        :raises LoginEnded, KubeError: the API server no longer accepts the token, or does not answer.
        """
        now = self._clock.monotonic()
        name, asked_at = self._seen.get((namespace, claim), ("", -GOOD_SECONDS))
        if now - asked_at < GOOD_SECONDS:
            return name
        query = {"labelSelector": f"{TENSORBOARD_LABEL}={claim}"}
        found = await self._client.get(session.token, f"/api/v1/namespaces/{namespace}/pods", query)
        name = ""
        for pod in items(at(found, "items")):
            if not await self._is_ours(session, namespace, claim, pod):
                name = str(at(pod, "metadata", "name"))
                break
        if len(self._seen) >= MOST:
            self._seen.clear()
        self._seen[namespace, claim] = name, now
        return name

    async def _is_ours(self, session: Session, namespace: str, claim: str, pod: Any) -> bool:
        """Return whether a ReplicaSet of the Deployment created a pod."""
        owner = _controller(pod, "ReplicaSet")
        if not is_name(at(owner, "name")):
            return False
        path = f"/apis/apps/v1/namespaces/{namespace}/replicasets/{at(owner, 'name')}"
        try:
            replicas = await self._client.get(session.token, path)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        made_by = _controller(replicas, "Deployment")
        same = at(replicas, "metadata", "uid") == at(owner, "uid")
        return same and at(made_by, "name") == tensorboard_name(claim)


def _controller(obj: Any, kind: str) -> Any:
    """Return the reference to the controller of an object if it is of this kind of `apps/v1`."""
    for owner in items(at(obj, "metadata", "ownerReferences")):
        if at(owner, "controller") is True and (at(owner, "apiVersion"), at(owner, "kind")) == ("apps/v1", kind):
            return owner
    return None
