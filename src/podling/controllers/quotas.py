"""The status of ResourceQuotas: what the namespace uses, counted again.

Admission adds what is created. This controller counts when a quota is new or its spec changed, and when an
object is deleted or uses less. After a status write it waits until no more come, because an informer may not
have seen yet what admission has admitted; then it counts, so that a status that somebody else wrote does not
stay.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informers
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.rules.quota import in_scope, limited, total, usage
from podling.model.rules.status import is_terminal
from podling.model.scheme import RESOURCES, resource_of
from podling.model.types.core import ResourceQuota, ResourceQuotaStatus
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

COUNTED = tuple(r for r in RESOURCES if r.stored and not r.view and r.namespaced and r.plural != "events")
RECOUNT = 300.0
QUIET = 1.0
"""Seconds without a status write after which informers have seen what admission wrote the last status for."""


class ResourceQuotas:
    name = "resourcequota"

    def __init__(self, client: Client, informers: Informers) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._informers = informers
        self._quotas = informers.of(ResourceQuota)
        self._written: dict[Key, asyncio.TimerHandle] = {}
        """Those whose status was written of late; counted when it has been quiet for a while."""
        self._quotas.subscribe(self._quota_changed)
        for resource in COUNTED:
            informers.of(resource.type).subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        quota = self._quotas.get(*key)
        if quota is None:
            return
        # What was written for an object that then was not stored is found by counting now and then.
        self.queue.add_after(key, RECOUNT)
        hard = quota.spec.hard
        found = (
            usage(obj)
            for resource in COUNTED
            if limited(resource, hard)
            for obj in self._informers.of(resource.type).items()
            if obj.metadata.namespace == key[0] and in_scope(quota.spec, obj)
        )
        status = ResourceQuotaStatus(hard=hard, used=total(found, hard))
        if status != quota.status:
            with gone_is_done():
                await self._client.update(replace(quota, status=status), subresource="status")

    def _quota_changed(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        if new is None:
            return
        key = new.metadata.namespace, new.metadata.name
        if old is None or new.spec != old.spec:
            self.queue.add(key)
        elif new.status != old.status:
            if key in self._written:
                self._written[key].cancel()

            def is_quiet() -> None:
                del self._written[key]
                self.queue.add(key)

            self._written[key] = asyncio.get_running_loop().call_later(QUIET, is_quiet)

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is None:
            return
        resource = resource_of(type(old))
        # A pod that ends and a service that changes may use less from then on.
        ends = isinstance(old, Pod) and isinstance(new, Pod) and not is_terminal(old) and is_terminal(new)
        if new is not None and not ends and resource.plural != "services":
            return
        for quota in self._quotas.items():
            if quota.metadata.namespace == old.metadata.namespace and limited(resource, quota.spec.hard):
                self.queue.add((quota.metadata.namespace, quota.metadata.name))
