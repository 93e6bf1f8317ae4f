"""A pod as the scheduler sees it: what it asks for, worked out once. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec
from msgspec.structs import replace

from podling.model.container import Container, ResourceList
from podling.model.declared_features import needed_to_run
from podling.model.host_ports import HostPort, host_ports
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStatus
from podling.model.quantity import Quantity
from podling.model.resources import pod_requests
from podling.scheduler.node_match import node_affinity
from podling.scheduler.pod_terms import PodTerms, Spread, pod_terms, spreads

Key = tuple[str, str]
"""(namespace, name)"""

NANO = 10**9
ZERO = Quantity("0")
DEFAULT_CPU = NANO // 10
DEFAULT_MEMORY = 200 * 1024 * 1024 * NANO
"""What a container that asks for nothing is taken to need when nodes are compared, never when they are
filtered."""

_shapes = msgspec.json.Encoder()


class PodInfo(msgspec.Struct, eq=False):
    """Amounts are nanos of the resource's unit. `cpu` and `memory` are what scores go by."""

    pod: Pod
    requests: Mapping[str, int]
    cpu: int
    memory: int
    ports: frozenset[HostPort]
    terms: PodTerms
    spreads: tuple[Spread, ...]
    images: tuple[str, ...]
    features: frozenset[str]
    """Those a node must declare."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> Key:
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    def shape(self) -> Hashable:
        """Equal for pods that every node alone answers alike."""
        spec = self.pod.spec
        rules = (spec.node_selector, node_affinity(spec), spec.tolerations, spec.node_name)
        return (
            frozenset(self.requests.items()),
            self.cpu,
            self.memory,
            self.ports,
            self.features,
            _shapes.encode(rules),
        )


def pod_info(pod: Pod) -> PodInfo:
    requests = {name: amount.nanos for name, amount in pod_requests(_held(pod)).items() if amount.nanos}
    return PodInfo(
        pod,
        requests,
        requests.get("cpu", 0) + DEFAULT_CPU * _without(pod, "cpu"),
        requests.get("memory", 0) + DEFAULT_MEMORY * _without(pod, "memory"),
        frozenset(host_ports(pod)),
        pod_terms(pod),
        spreads(pod),
        tuple(_tagged(one.image) for one in (*pod.spec.init_containers, *pod.spec.containers)),
        needed_to_run(pod.spec),
    )


def _tagged(image: str) -> str:
    """As nodes tell of it."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


class Given(msgspec.Struct, frozen=True):
    """What the kubelet says of a pod's resources, by container. `refused`: it will never give what is asked
    for now."""

    containers: Mapping[str, ResourceList]
    refused: bool


def given(pod: Pod) -> Given:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    containers = {status.name: _given(status) for status in statuses}
    return Given({name: amounts for name, amounts in containers.items() if amounts}, _is_infeasible(pod))


def _given(status: ContainerStatus) -> ResourceList:
    """What a container is to have by its kubelet's decision, or still has."""
    has = status.resources.requests if status.resources is not None else {}
    return _most(status.allocated_resources, has)


def _is_infeasible(pod: Pod) -> bool:
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions)


def _held(pod: Pod) -> Pod:
    """The pod as if its containers asked for what they still have: one that is to shrink keeps its room until
    its kubelet has shrunk it, one that asks for more than its node can ever give gets none of it.
    """
    has = given(pod)
    if not has.containers:
        return pod
    spec = replace(
        pod.spec,
        containers=[_holding(container, has) for container in pod.spec.containers],
        init_containers=[_holding(container, has) for container in pod.spec.init_containers],
    )
    return replace(pod, spec=spec)


def _holding(container: Container, has: Given) -> Container:
    asked, amounts = container.resources.requests, has.containers.get(container.name)
    if amounts is None:
        return container
    held = amounts if has.refused else _most(asked, amounts)
    if held == asked:
        return container
    return replace(container, resources=replace(container.resources, requests=held))


def _most(one: ResourceList, other: ResourceList) -> ResourceList:
    return {**one, **{name: amount for name, amount in other.items() if amount > one.get(name, ZERO)}}


def _without(pod: Pod, resource: str) -> int:
    """How many containers do not say how much of `resource` they need."""
    if pod.spec.resources is not None and resource in pod.spec.resources.requests:
        return 0
    return sum(1 for container in pod.spec.containers if resource not in container.resources.requests)
