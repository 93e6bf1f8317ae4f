"""Which service a change concerns: what the controllers of Endpoints and EndpointSlices subscribe with. Each
gives a handler that adds the keys of those services to `queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.controllers.service_pods import matters, selected_by
from podling.model.endpoint_slice import EndpointSlice
from podling.model.meta import KubeObject
from podling.model.pod import Pod
from podling.model.service import Service

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"

T = TypeVar("T")
Handler = Callable[[T | None, T | None], None]


def of_the_same_name(queue: WorkQueue[Key]) -> Handler[KubeObject]:
    """For services themselves, and Endpoints, which are called like them."""

    def changed(old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        if one is not None:
            queue.add((one.metadata.namespace, one.metadata.name))

    return changed


def of_slices(queue: WorkQueue[Key], controller: str) -> Handler[EndpointSlice]:
    """For the slices that `controller` looks after."""

    def changed(old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        one = new or old
        if one is not None and one.metadata.labels.get(MANAGED_BY) == controller:
            queue.add((one.metadata.namespace, one.metadata.labels.get(SERVICE_LABEL, "")))

    return changed


def of_pods(queue: WorkQueue[Key], services: Informer[Service]) -> Handler[Pod]:
    """For pods: all services that select one."""

    def changed(old: Pod | None, new: Pod | None) -> None:
        if matters(old, new):
            for key in selected_by(services.items(), (old, new)):
                queue.add(key)

    return changed
