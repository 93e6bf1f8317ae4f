"""Deleting a namespace's content, and what every namespace has: `kube-root-ca.crt` and the `default` service
account.

`Namespaces` deletes everything in a terminating namespace and then removes its finalizer. Pods go first, and
nothing else before the last of them is gone: secrets and config maps that they use while they end stay until
then (OrderedNamespaceDeletion). While pods are waited for, the conditions report nothing else as remaining,
as in Kubernetes.

Discovery says which resources there are, so kinds that podling has no type for are deleted too. What is left
is read from the server and not from caches, because a namespace must not vanish while an object is in it.
Objects that need time (pods with a grace period) are waited for by looking again.

Pods trust the API server by the ConfigMap `kube-root-ca.crt`. No pod can be created before the service
account `default` exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import filterfalse

import msgspec
from msgspec.structs import replace

from podling.client.client import Client, Served, served
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.errors import StatusError
from podling.model.time import Clock, rfc3339
from podling.model.types.core import ConfigMap, Namespace, NamespaceCondition, NamespaceSpec, ServiceAccount
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

CONFIG_MAP = "kube-root-ca.crt"
DATA_KEY = "ca.crt"
DESCRIPTION = {
    "kubernetes.io/description": "The certificate authority that signs the API server's certificate."
}
DEFAULT = "default"
"""The service account that every namespace has."""

FINALIZER = "kubernetes"
LOOK_AGAIN = 8.0
"""Seconds; Kubernetes expects finalizers to take 15, and looks when half of that is over."""
NEEDED = {"list", "deletecollection"}
FINE = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
"""Type of a condition → reason and message while it is False."""


class RootCA:
    name = "root-ca-certificate-publisher"

    def __init__(
        self, client: Client, namespaces: Informer[Namespace], config_maps: Informer[ConfigMap], ca: str
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._config_maps = config_maps
        self._data = {DATA_KEY: ca}
        namespaces.subscribe(self._namespace_changed)
        config_maps.subscribe(own_key(self.queue, CONFIG_MAP))

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        owner = self._namespaces.get("", namespace)
        if owner is None or owner.metadata.deletion_timestamp:
            return
        found = self._config_maps.get(namespace, name)
        if found is None:
            metadata = ObjectMeta(name=name, namespace=namespace, annotations=DESCRIPTION)
            await self._client.create(ConfigMap(metadata=metadata, data=self._data))
        elif found.data != self._data:
            # By update, which is all that its account may.
            await self._client.update(replace(found, data=self._data))

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add((new.metadata.name, CONFIG_MAP))


def conditions(
    left: Mapping[str, int],
    finalizers: Mapping[str, int],
    errors: Sequence[str],
    before: Sequence[NamespaceCondition],
    now: str,
) -> list[NamespaceCondition]:
    """The conditions of a terminating namespace. `left` counts objects by resource, `finalizers` by
    finalizer; `errors` are those of deleting."""
    failed = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(errors)}"
    remain = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(left.items()))
    hold = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    faults = {
        "NamespaceDeletionContentFailure": (errors, "ContentDeletionFailed", failed),
        "NamespaceContentRemaining": (
            left,
            "SomeResourcesRemain",
            f"Some resources are remaining: {remain}",
        ),
        "NamespaceFinalizersRemaining": (
            finalizers,
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {hold}",
        ),
    }
    standing = {condition.type: condition for condition in before}
    said = []
    for type, (reason, message) in FINE.items():
        is_so, *fault = faults.get(type, ((), "", ""))
        status = "True" if is_so else "False"
        if is_so:
            reason, message = fault
        old = standing.get(type)
        since = old.last_transition_time if old is not None and old.status == status else now
        condition = NamespaceCondition(type=type, status=status, reason=reason, message=message)
        condition.last_transition_time = since
        said.append(condition)
    return said


class _Found(msgspec.Struct):
    """What was left in a namespace after everything in it had been deleted."""

    left: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    errors: list[str] = msgspec.field(default_factory=list)
    pods_remain: bool = False


class Namespaces:
    name = "namespace"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        pods: Informer[Pod],
        claims: Informer[PersistentVolumeClaim],
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        namespaces.subscribe(self._changed)
        # What a terminating namespace most often waits for: both may stay for a while after their deletion.
        pods.subscribe(self._content_changed)
        claims.subscribe(self._content_changed)

    async def reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(*key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return
        if FINALIZER not in namespace.spec.finalizers:
            return
        found = await self._empty(namespace.metadata.name)
        with gone_is_done():
            before, now = namespace.status.conditions, rfc3339(self._clock.now())
            said = conditions(found.left, found.finalizers, found.errors, before, now)
            if said != before:
                told = replace(namespace, status=replace(namespace.status, conditions=said))
                namespace = await self._client.update(told, subresource="status")
            if not found.left and not found.errors and not found.pods_remain:
                kept = [finalizer for finalizer in namespace.spec.finalizers if finalizer != FINALIZER]
                emptied = replace(namespace, spec=NamespaceSpec(finalizers=kept))
                await self._client.update(emptied, subresource="finalize")
                return
        self.queue.add_after(key, LOOK_AGAIN)

    async def _empty(self, namespace: str) -> _Found:
        """Delete what is in the namespace; returns what is left."""
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

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        begins = old is None or not old.metadata.deletion_timestamp
        if new is not None and new.metadata.deletion_timestamp and begins:
            self.queue.add(("", new.metadata.name))

    def _content_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if new is None and old is not None:
            self.queue.add(("", old.metadata.namespace))


def _is_pods(resource: Served) -> bool:
    return (resource.group, resource.plural) == ("", "pods")


class ServiceAccounts:
    name = "serviceaccount"

    def __init__(
        self, client: Client, namespaces: Informer[Namespace], accounts: Informer[ServiceAccount]
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._accounts = accounts
        namespaces.subscribe(self._namespace_changed)
        accounts.subscribe(own_key(self.queue, DEFAULT))

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        owner = self._namespaces.get("", namespace)
        if owner is None or owner.metadata.deletion_timestamp or self._accounts.get(namespace, name):
            return
        await self._client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace)))

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add((new.metadata.name, DEFAULT))
