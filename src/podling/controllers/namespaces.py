"""The end of a namespace: everything in it is deleted, and when nothing is left its finalizer is taken away.

Pods go first, and nothing else before the last of them is gone: what they use while they end, such as secrets
and config maps, stays until then (OrderedNamespaceDeletion). While pods are waited for, the conditions say
that nothing remains, as they do in Kubernetes.

What there may be is asked of the server, so kinds that podling has no type for are found too. What is left is
read from the server, not from caches: a namespace must not vanish while one object is still in it. Objects
that take time to go (pods with a grace period) are waited for by looking again.
"""

from __future__ import annotations

from collections import Counter
from itertools import filterfalse

import msgspec
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.discovery import Served, served
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.namespace_conditions import conditions
from podling.model.errors import StatusError
from podling.model.namespace import Namespace, NamespaceSpec
from podling.model.pod import Pod
from podling.model.time import Clock, rfc3339

FINALIZER = "kubernetes"
LOOK_AGAIN = 8.0
"""Seconds; Kubernetes expects finalizers to take 15, and looks when half of that is over."""
NEEDED = {"list", "deletecollection"}


class _Found(msgspec.Struct):
    """What was in a namespace after everything in it had been deleted."""

    left: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[str] = msgspec.field(default_factory=list)
    pods_remain: bool = False


class Namespaces:
    name = "namespace"

    def __init__(
        self, client: Client, namespaces: Informer[Namespace], pods: Informer[Pod], clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        namespaces.subscribe(self._changed)
        pods.subscribe(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(*key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return
        if FINALIZER not in namespace.spec.finalizers:
            return
        found = await self._empty(namespace.metadata.name)
        with gone_is_done():
            namespace = await self._say(namespace, found)
            if not found.left and not found.errors and not found.pods_remain:
                await self._finalize(namespace)
                return
        self.queue.add_after(key, LOOK_AGAIN)

    async def _empty(self, namespace: str) -> _Found:
        """Delete what is there; what was left to wait for."""
        every = [r for r in await served(self._client) if r.namespaced and r.verbs >= NEEDED]
        found = _Found()
        for resource in filter(_is_pods, every):
            await self._empty_of(resource, namespace, found)
        if found.left or found.errors:
            return _Found(errors=found.errors, pods_remain=True)
        for resource in filterfalse(_is_pods, every):
            await self._empty_of(resource, namespace, found)
        return found

    async def _empty_of(self, resource: Served, namespace: str, found: _Found) -> None:
        path = resource.path(namespace)
        try:
            if not await self._client.list_metadata(path):
                return
            await self._client.delete_path(path)
        except StatusError as error:
            found.errors.append(error.message)
        for metadata in await self._client.list_metadata(path):
            found.left[f"{resource.plural}.{resource.group}"] += 1
            found.finalizers.update(metadata.metadata.finalizers)

    async def _say(self, namespace: Namespace, found: _Found) -> Namespace:
        before, now = namespace.status.conditions, rfc3339(self._clock.now())
        said = conditions(found.left, found.finalizers, found.errors, before, now)
        if said == before:
            return namespace
        status = replace(namespace.status, conditions=said)
        return await self._client.update(replace(namespace, status=status), subresource="status")

    async def _finalize(self, namespace: Namespace) -> None:
        left = [finalizer for finalizer in namespace.spec.finalizers if finalizer != FINALIZER]
        emptied = replace(namespace, spec=NamespaceSpec(finalizers=left))
        await self._client.update(emptied, subresource="finalize")

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        begins = old is None or not old.metadata.deletion_timestamp
        if new is not None and new.metadata.deletion_timestamp and begins:
            self.queue.add(("", new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        # The last pod to go is what a terminating namespace most often waits for.
        if new is None and old is not None:
            self.queue.add(("", old.metadata.namespace))


def _is_pods(resource: Served) -> bool:
    return (resource.group, resource.plural) == ("", "pods")
