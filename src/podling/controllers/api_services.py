"""APIServices: one for each group and version that the API server has itself, and whether the servers behind
the others are there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podling.client.client import Client
from podling.client.informer import Groups, Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.api_services import LOCAL, PASSED, Finding, failed_check, obstacle, set_condition
from podling.model.rules.service_endpoints import SERVICE_NAME
from podling.model.scheme import MEASURED, RESOURCES
from podling.model.time import Clock
from podling.model.types.apiregistration import (
    AUTO_MANAGED,
    PRIORITIES,
    APIService,
    APIServiceReference,
    APIServiceSpec,
)
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.service import Service

LOOK_EVERY = 30.0
"""Seconds between two looks at a server, as in Kubernetes; one that fails is looked at sooner at first."""
FaultOf = Callable[[APIService], Awaitable[str]]
"""Why the server behind an APIService does not answer; empty if it does."""


class LocalServices:
    """Creates them once; one that is deleted is created again at the next start, as in Kubernetes."""

    name = "local-api-services"

    def __init__(self, client: Client, *, measures: bool) -> None:
        """`measures`: whether the server has metrics.k8s.io."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        served = (*RESOURCES, *MEASURED) if measures else RESOURCES
        for group_version in dict.fromkeys((one.group, one.version) for one in served):
            if group_version in PRIORITIES:
                self.queue.add(group_version)

    async def reconcile(self, key: Key) -> None:
        group, version = key
        spec = APIServiceSpec(None, group, version, False, b"", *PRIORITIES[key])
        metadata = ObjectMeta(name=f"{version}.{group}", labels={AUTO_MANAGED: "onstart"})
        try:
            await self._client.create(APIService(metadata=metadata, spec=spec))
        except StatusError as error:
            if error.code != 409:
                raise


class Availability:
    """Says in the condition of each APIService whether requests can be passed on."""

    name = "api-service-availability"

    def __init__(
        self,
        client: Client,
        found: Informer[APIService],
        services: Informer[Service],
        slices: Informer[EndpointSlice],
        clock: Clock,
        fault_of: FaultOf,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._found, self._services, self._clock = client, found, services, clock
        self._fault_of = fault_of
        self._slices = Groups(slices, lambda one: (one.metadata.namespace, _owner(one)))
        self._by_service = Groups(found, lambda one: _whose(one.spec.service))
        found.subscribe(self._changed)
        services.subscribe(lambda old, new: self._touched(old or new, lambda one: one.metadata.name))
        slices.subscribe(lambda old, new: self._touched(old or new, _owner))

    async def reconcile(self, key: Key) -> None:
        found = self._found.get(*key)
        if found is None:
            return
        finding = await self._look(found)
        obj = json.decode(json.encode(found), APIService)
        set_condition(obj.status, finding, self._clock.now())
        with gone_is_done():
            if obj.status != found.status:
                await self._client.update(obj, subresource="status")
        if found.spec.service is None:
            return
        if finding.reason == failed_check("").reason:
            self.queue.retry(key)
        else:
            self.queue.add_after(key, LOOK_EVERY)

    async def _look(self, found: APIService) -> Finding:
        wanted = found.spec.service
        if wanted is None:
            return LOCAL
        service = self._services.get(wanted.namespace, wanted.name)
        slices = self._slices.of((wanted.namespace, wanted.name))
        if (fault := obstacle(wanted, service, list(slices))) is not None:
            return fault
        why = await self._fault_of(found)
        return failed_check(why) if why else PASSED

    def _changed(self, old: APIService | None, new: APIService | None) -> None:
        # What this writes itself is no reason to look again.
        if new is not None and (old is None or old.spec != new.spec):
            self.queue.add(("", new.metadata.name))

    def _touched(self, obj: KubeObject | None, name_of: Callable[..., str]) -> None:
        assert obj is not None, "an event has an object"
        for one in self._by_service.of((obj.metadata.namespace, name_of(obj))):
            self.queue.add(("", one.metadata.name))


def _owner(one: EndpointSlice) -> str:
    return one.metadata.labels.get(SERVICE_NAME, "")


def _whose(service: APIServiceReference | None) -> Key:
    return ("", "") if service is None else (service.namespace, service.name)
