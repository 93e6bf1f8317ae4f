"""The namespaces every cluster has, created when they are missing."""

from __future__ import annotations

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.model.meta import ObjectMeta
from podling.model.namespace import Namespace

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class SystemNamespaces:
    name = "system-namespaces"

    def __init__(self, client: Client, namespaces: Informer[Namespace]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        namespaces.subscribe(self._changed)
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get(*key) is None:
            await self._client.create(Namespace(metadata=ObjectMeta(name=key[1])))

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None and old is not None and old.metadata.name in SYSTEM_NAMESPACES:
            self.queue.add(("", old.metadata.name))
