"""The end of a namespace: everything in it is deleted, and when nothing is left its finalizer is taken away.

What is left is read from the server, not from caches: a namespace must not vanish while one object is still
in it. Objects that take time to go (pods with a grace period) are waited for by looking again.
"""

from __future__ import annotations

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.model.errors import StatusError
from podling.model.namespace import Namespace, NamespaceSpec
from podling.model.pod import Pod
from podling.model.scheme import RESOURCES

FINALIZER = "kubernetes"
LOOK_AGAIN = 15.0


class Namespaces:
    name = "namespace"

    def __init__(self, client: Client, namespaces: Informer[Namespace], pods: Informer[Pod]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        namespaces.subscribe(self._changed)
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(*key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return
        if await self._empty(namespace.metadata.name):
            await self._finalize(namespace)
        else:
            self.queue.add_after(key, LOOK_AGAIN)

    async def _empty(self, namespace: str) -> bool:
        """Delete what is there; whether nothing was left to wait for."""
        empty = True
        for resource in RESOURCES:
            if not resource.namespaced:
                continue
            try:
                await self._client.delete_collection(resource.type, namespace)
                left = await self._client.list(resource.type, namespace)
            except StatusError as error:
                if error.code not in (404, 405):
                    raise
                continue
            empty = empty and not left.items
        return empty

    async def _finalize(self, namespace: Namespace) -> None:
        left = [finalizer for finalizer in namespace.spec.finalizers if finalizer != FINALIZER]
        finalized = replace(namespace, spec=NamespaceSpec(finalizers=left))
        try:
            await self._client.update(finalized, subresource="finalize")
        except StatusError as error:
            if error.code != 404:
                raise

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and new.metadata.deletion_timestamp:
            self.queue.add(("", new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        # The last pod to go is what a terminating namespace most often waits for.
        if new is None and old is not None:
            self.queue.add(("", old.metadata.namespace))
