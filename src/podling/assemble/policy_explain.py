"""`podling policies explain`: the objects of a cluster, and this machine's tables beside them."""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass

from podling.assemble.explain import in_kernel
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.model.types.core import Namespace
from podling.model.types.networking import NetworkPolicy
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.network.nft import NftError, program
from podling.network.policy import pod_facts
from podling.network.policy_explain import Asked, chains_of, end_of, explain
from podling.network.policy_table import dropped
from podling.network.table import IPV4, IPV6, Shape


@dataclass(frozen=True)
class Question:
    """From and to are `ADDRESS`, `POD` or `NAMESPACE/POD`; `protocol` is in small letters."""

    source: str
    destination: str
    port: int
    protocol: str


async def explain_policies(
    client: Client, instance: Instance, node: str, question: Question, namespace: str
) -> list[str]:
    """Lines. Raises StatusError, OSError, and ValueError for who is not there."""
    policies, namespaces, pods, nodes = await asyncio.gather(
        client.list(NetworkPolicy), client.list(Namespace), client.list(Pod), client.list(Node)
    )
    facts = [pod_facts(pod, node) for pod in pods.items]
    source = end_of(question.source, namespace, facts)
    version = ipaddress.ip_address(source.address).version
    destination = end_of(question.destination, namespace, facts, version)
    if ipaddress.ip_address(destination.address).version != version:
        raise ValueError(f"{source.address} and {destination.address} are of different IP versions")
    asked = Asked(source, destination, question.protocol, question.port)
    labels = {one.metadata.name: one.metadata.labels for one in namespaces.items}
    own = [one.address for each in nodes.items if each.metadata.name == node for one in each.status.addresses]
    shape = Shape(IPV4 if version == 4 else IPV6, instance.policies_table)
    lines = explain(asked, policies.items, labels, own)
    for of_map, address in chains_of(asked):
        element = in_kernel(shape, of_map, address)
        found = element.removeprefix(f"{address} : ") or "no rule: nothing limits it"
        lines.append(f"  kernel: {of_map} of {address}: {found}")
    try:
        counted = dropped(program(f"list counters table {shape.family.name} {shape.table}\n"))
    except NftError:
        return lines
    listed = ", ".join(f"{number} of {direction}" for direction, number in sorted(counted.items()))
    return [*lines, f"  packets dropped by all policies here so far: {listed}"]
