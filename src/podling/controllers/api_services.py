"""An APIService for each group and version that the API server has itself."""

from __future__ import annotations

from podling.client.client import Client
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.model.errors import StatusError
from podling.model.scheme import RESOURCES
from podling.model.types.apiregistration import AUTO_MANAGED, PRIORITIES, APIService, APIServiceSpec
from podling.model.types.meta import ObjectMeta


class LocalServices:
    """Creates them once; one that is deleted is created again at the next start, as in Kubernetes."""

    name = "local-api-services"

    def __init__(self, client: Client) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        for served in dict.fromkeys((resource.group, resource.version) for resource in RESOURCES):
            if served in PRIORITIES:
                self.queue.add(served)

    async def reconcile(self, key: Key) -> None:
        group, version = key
        spec = APIServiceSpec(None, group, version, False, b"", *PRIORITIES[key])
        metadata = ObjectMeta(name=f"{version}.{group}", labels={AUTO_MANAGED: "onstart"})
        try:
            await self._client.create(APIService(metadata=metadata, spec=spec))
        except StatusError as error:
            if error.code != 409:
                raise
