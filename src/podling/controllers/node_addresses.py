"""The node IPAM controller: it gives each node a subnet of the cluster's for its pods, as Node.spec.podCIDR,
once and for all. A node that says its own when it registers keeps it.

Kubernetes' kube-controller-manager does so with `--allocate-node-cidrs`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.rules.pod_subnets import pod_subnets
from podling.model.types.node import Node

MASK_SIZE = 24
"""The prefix of a node's subnet, as in Kubernetes for IPv4."""
LATER = 60.0
"""Seconds until a node that got none is looked at again, if no other is removed meanwhile."""

Subnet = ipaddress.IPv4Network


def subnets_of(node: Node) -> Iterator[Subnet]:
    for one in node.spec.pod_cidrs:
        if ":" not in one:
            yield ipaddress.IPv4Network(one)


def free_subnet(cluster: str, taken: Iterable[Subnet], mask_size: int = MASK_SIZE) -> str:
    """The first of the cluster's that overlaps none of `taken`; empty if there is none."""
    whole = ipaddress.IPv4Network(cluster)
    size = 1 << (32 - mask_size)
    first = int(whole.network_address)
    used = set[int]()
    for one in taken:
        # A subnet of another size may overlap several, or a part of one.
        begin, end = int(one.network_address), int(one.broadcast_address)
        used.update(range((begin - first) // size, (end - first) // size + 1))
    number = next((n for n in range(whole.num_addresses // size) if n not in used), None)
    return f"{ipaddress.IPv4Address(first + number * size)}/{mask_size}" if number is not None else ""


class NodeAddresses:
    name = "nodeipam"

    def __init__(
        self, client: Client, nodes: Informer[Node], events: EventRecorder, cluster: str, services: str
    ) -> None:
        """`cluster` is the subnet of all pods (`--cluster-cidr`), `services` are those of services."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._nodes, self._events = client, nodes, events
        self._cluster, self._services = cluster, services
        self._given: dict[str, Subnet] = {}
        """What the informer may not show yet, by node."""
        nodes.subscribe(own_key(self.queue))
        nodes.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        node = self._nodes.get(*key)
        if node is None or node.spec.pod_cidrs:
            return
        name = node.metadata.name
        if name not in self._given:
            taken = [one for other in self._nodes.items() for one in subnets_of(other)]
            found = free_subnet(self._cluster, [*taken, *self._given.values()])
            if not found:
                text = f"Node {name} status is now: CIDRNotAvailable"
                self._events.normal(node, "CIDRNotAvailable", text)
                self.queue.add_after(key, LATER)
                return
            self._given[name] = ipaddress.IPv4Network(found)
        subnet, *beside = pod_subnets(str(self._given[name]), self._services).split(",")
        with gone_is_done():
            patch = {
                "metadata": {"uid": node.metadata.uid},
                "spec": {"podCIDR": subnet, "podCIDRs": [subnet, *beside]},
            }
            await self._client.patch(Node, name, "", patch)

    def _changed(self, old: Node | None, new: Node | None) -> None:
        one = new or old
        if one is None:
            return
        if new is None or new.spec.pod_cidrs:
            self._given.pop(one.metadata.name, None)
        if new is None:
            # Its subnet is another's from now on.
            for other in self._nodes.items():
                if not other.spec.pod_cidrs:
                    self.queue.add(("", other.metadata.name))
