"""Which services' keys a change adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, own_key
from podling.controllers.endpoints import MANAGED_BY, SERVICE_LABEL, of_pods, of_slices
from podling.controllers.selection import Selection
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.service import Service, ServiceSpec


@dataclass
class Listing:
    """An informer, as far as it is asked."""

    objects: list[Any]

    def of_namespace(self, namespace: str) -> dict[str, Any]:
        return {one.metadata.name: one for one in self.objects if one.metadata.namespace == namespace}

    def subscribe(self, handler: Callable[[Any, Any], None]) -> None:
        for one in self.objects:
            handler(None, one)


async def added(queue: WorkQueue[Key]) -> set[Key]:
    keys = {await queue.get() for _ in range(len(queue))}
    for key in keys:
        queue.done(key)
    return keys


def named(name: str, **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="ns", labels=labels)


async def test_a_service_and_what_is_called_like_it_add_their_own_key_even_when_gone() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    changed = own_key(queue)
    changed(None, Service(metadata=named("made")))
    changed(Service(metadata=named("gone")), None)
    assert await added(queue) == {("ns", "made"), ("ns", "gone")}


async def test_a_slice_adds_its_service_if_it_is_the_controllers_own() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    changed = of_slices(queue, "me")
    for owner, service in (("me", "web"), ("another", "db")):
        meta = named("slice", **{MANAGED_BY: owner, SERVICE_LABEL: service})
        changed(EndpointSlice(metadata=meta), None)
    assert await added(queue) == {("ns", "web")}


async def test_a_pod_adds_the_services_that_select_it_or_did() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    services = [Service(metadata=named(app), spec=ServiceSpec(selector={"app": app})) for app in "abc"]
    selection = Selection(Listing(services), Listing([]))  # type: ignore[arg-type]
    changed = of_pods(queue, selection)
    before, after = Pod(metadata=named("p", app="a")), Pod(metadata=named("p", app="b"))
    changed(before, after)
    assert await added(queue) == {("ns", "a"), ("ns", "b")}
    changed(after, Pod(metadata=named("p", app="b", more="unseen")))
    assert await added(queue) == {("ns", "b")}
    changed(after, after)
    assert await added(queue) == set()
