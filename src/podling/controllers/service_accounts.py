"""The `default` service account of every namespace: a pod cannot be created before it is there."""

from __future__ import annotations

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.model.meta import ObjectMeta
from podling.model.namespace import Namespace
from podling.model.service_account import ServiceAccount

DEFAULT = "default"


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
        accounts.subscribe(self._account_changed)

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        owner = self._namespaces.get("", namespace)
        if owner is None or owner.metadata.deletion_timestamp or self._accounts.get(namespace, name):
            return
        await self._client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace)))

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add((new.metadata.name, DEFAULT))

    def _account_changed(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is None and old is not None and old.metadata.name == DEFAULT:
            self.queue.add((old.metadata.namespace, DEFAULT))
