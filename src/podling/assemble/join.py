"""A machine joins a cluster: from a bootstrap token to a certificate of its own, and a Node with a subnet.

    discovery ─▶ the name is free ─▶ a client certificate, by the token ─▶ kubelet.conf

What fails changes nothing but a key that is not used. `kubelet.conf` is written last: where it is there, the
machine has joined, and a start needs no token any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podling.assemble.discovery import MAKE_ANOTHER, Joining, by_token, discovered
from podling.assemble.kubeconfigs import CLUSTER_NAME
from podling.assemble.node_certificates import (
    RequestError,
    Wanted,
    client_certificate,
    kept,
    obtain,
)
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import until
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.machine import this_machine
from podling.kubelet.node.status import new_node
from podling.machine.instance import Instance
from podling.machine.pki import write_whole
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.rules.status import is_condition_true
from podling.model.types.authorization import (
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)
from podling.model.types.networking import ServiceCIDR
from podling.model.types.node import Node, NodeAddress, NodeStatus, Taint
from podling.model.types.service import Service
from podling.network.routes import subnets_of

APPROVED_WITHIN = 60.0
"""Seconds for a certificate."""
SUBNET_WITHIN = 30.0
"""Seconds for the subnet of a node's pods."""
KNOWN_FILE = "cluster.json"
DNS = "kube-system", "kube-dns"


async def join(instance: Instance, joining: Joining, node: str, now: datetime) -> None:
    """Become the node `node`. Raises StartError."""
    if instance.database.exists():
        raise StartError(f"{instance.data_dir} has a cluster of its own: give another --data-dir")
    authority = await discovered(joining)
    wanted = client_certificate(instance.pki_dir, node)
    try:
        async with by_token(joining, authority) as client:
            await check_name(client, node)
            wanted.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            async with asyncio.timeout(APPROVED_WITHIN):
                await obtain(client, wanted)
    except TimeoutError as error:
        raise StartError(
            "nobody has approved the certificate of this node: `kubectl get csr` shows its request"
        ) from error
    except StatusError as error:
        if error.code == 401:
            raise StartError(f"the token is not taken any more: {MAKE_ANOTHER}") from error
        raise StartError(f"the cluster does not let this machine join: {error.message}") from error
    except (OSError, RequestError) as error:
        raise StartError(f"the cluster has given this node no certificate: {error}") from error
    check_time(wanted, now)
    kubeconfig.write_joined(instance.joined_kubeconfig, CLUSTER_NAME, joining.url, authority, wanted.file)


async def check_name(client: Client, name: str) -> None:
    """Raises StartError if another machine has it; StatusError."""
    try:
        standing = await client.get(Node, name)
    except StatusError as error:
        if error.code != 404:
            raise
        return
    if is_condition_true(standing.status.conditions, "Ready"):
        raise StartError(
            f'the cluster has a node "{name}" already, and it is Ready: give another --node-name, '
            f"or `kubectl delete node {name}` first"
        )


def check_time(wanted: Wanted, now: datetime) -> None:
    """Raises StartError if the node's certificate is not of this time."""
    lifetime = kept(wanted)
    if lifetime is None:
        raise StartError(f"{wanted.file}, the certificate of this node, is lost: join again, with a token")
    if now < lifetime.begins:
        raise StartError(
            f"this node's certificate is valid from {lifetime.begins:%Y-%m-%d %H:%M:%S} UTC on, and it is "
            f"{now:%Y-%m-%d %H:%M:%S} here: the clocks of this machine and of the cluster differ"
        )
    if now > lifetime.ends:
        raise StartError(
            f"the certificate of this node has ended on {lifetime.ends:%Y-%m-%d %H:%M} UTC: join again, with "
            "a token; or is the clock of this machine ahead?"
        )


async def identify(client: Client, wanted: Wanted, now: datetime) -> None:
    """Have the certificate by which the node looks after its network; `client` is the node's own. None is
    needed where nodes may all that themselves, as an administrator can let them, nor, for now, while nobody
    answers. Raises StartError."""
    lifetime = kept(wanted)
    if lifetime is not None and lifetime.has(now):
        return
    asked = ResourceAttributes(verb="list", group="networking.k8s.io", resource="networkpolicies")
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=asked))
    try:
        async with asyncio.timeout(APPROVED_WITHIN) as waiting:
            if not (await client.create(review)).status.allowed:
                await obtain(client, wanted)
    except (StatusError, RequestError) as error:
        raise StartError(f"the cluster has given this node's network no certificate: {error}") from error
    except OSError as error:
        if waiting.expired():
            raise StartError(
                "nobody has approved the certificate of this node's network: `kubectl get csr` shows its "
                "request"
            ) from error
        # No server answers: a node that was one before starts all the same, and asks later.


class Known(msgspec.Struct, frozen=True):
    """What a node must know of its cluster before its runtime starts: the subnets of its pods and of
    services, separated by commas, and where pods ask for names; what is not known is empty."""

    subnets: str = msgspec.field(name="subnet")
    services: str = ""
    dns: str = ""


async def known(client: Client, beside: Client, instance: Instance, node: Node) -> Known:
    """Register `node` and ask; what was known before if no API server answers. `beside` is who looks after
    its network. Raises StartError."""
    file = instance.data_dir / KNOWN_FILE
    try:
        found = Known(await registered(client, node))
        with suppress(StatusError):
            services = (await beside.get(ServiceCIDR, "kubernetes")).spec.cidrs
            found = replace(found, services=",".join(services))
        with suppress(StatusError):
            dns = (await client.get(Service, DNS[1], DNS[0])).spec.cluster_ip
            found = replace(found, dns=dns)
    except OSError as error:
        try:
            return msgspec.json.decode(file.read_bytes(), type=Known)
        except (OSError, ValueError):
            raise StartError(f"no API server of the cluster can be reached: {error}") from error
    write_whole(file, msgspec.json.encode(found), 0o644)
    return found


def new_member(config: KubeletConfig, taints: Sequence[Taint]) -> Node:
    """As its kubelet makes it, before its runtime runs; the kubelet says later how it stands."""
    config.root_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
    machine = this_machine(config.root_dir)
    status = NodeStatus(
        addresses=[
            *(NodeAddress(type="InternalIP", address=one) for one in config.node_ips),
            NodeAddress(type="Hostname", address=machine.hostname),
        ]
    )
    node = new_node(config, machine, status)
    node.spec.taints = list(taints)
    return node


async def registered(client: Client, node: Node) -> str:
    """Have the Node, and wait for the subnet of its pods, without which no network can be set up. Raises
    StartError, OSError."""
    try:
        await client.create(node)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise StartError(f"the node cannot be registered: {error.message}") from error
    found: list[str] = []

    def has_subnet(seen: Node) -> bool:
        found[:] = [",".join(subnets_of(seen))]
        return bool(found[0])

    try:
        async with asyncio.timeout(SUBNET_WITHIN):
            await until(client, Node, "", node.metadata.name, has_subnet)
    except TimeoutError as error:
        raise StartError(
            "the cluster gives this node no subnet for its pods (Node.spec.podCIDR): does its "
            "kube-controller-manager run with --allocate-node-cidrs, and is --cluster-cidr large enough?"
        ) from error
    return found[0]
