"""Approves two certificates that nodes ask for, and Kubernetes leaves to an administrator.

That of a kubelet's server, if it is for the addresses of its own node and of nobody else: a node says itself
which addresses it has, and who has a certificate for an address can be taken for the one who is there
(docs/decisions/119). So an address that another node has, or an API server or a service, is left to an
administrator here, too.

And that by which a machine that has joined looks after its network and leaves (docs/decisions/108). What does
it is nobody's pod, so it can have no account's token. A node gets it only for itself.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.certificates import approve
from podling.controllers.certificates_rules import CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, fault
from podling.controllers.controller import Key, own_key
from podling.model.rules.certificates import (
    APPROVED,
    CLIENT_SIGNER,
    DENIED,
    JOINED_NODE,
    JOINED_NODES,
    KUBELET_SERVING_SIGNER,
    NODE,
    NODES,
    conditions_of,
    read_request,
)
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.node import Node

MESSAGE = "Auto approving kubelet serving certificate for the node's own addresses."
MESSAGE_OF_NETWORK = "Auto approving the certificate of a node's own network."
NOT_OF_NODES = (".svc", ".cluster.local", ".local", ".localhost")
"""How names end that may be others' in a cluster."""


class Others(msgspec.Struct, frozen=True):
    """What no node may have a certificate for: names and addresses of the API server, and the subnets of
    services."""

    hosts: Collection[str]
    services: Sequence[str]

    def have(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        subnets = (ipaddress.ip_network(one) for one in self.services)
        return str(address) in self.hosts or address.is_loopback or any(address in one for one in subnets)


def is_its_own(request: CertificateSigningRequest, nodes: Iterable[Node], others: Others) -> bool:
    """Whether all that the certificate is for is the node's that asks for it. Raises ValueError."""
    spec = request.spec
    name = spec.username.removeprefix(NODE)
    if not spec.username.startswith(NODE) or NODES not in spec.groups or fault(request):
        return False
    told: dict[str, set[str]] = {}
    for node in nodes:
        for one in node.status.addresses:
            told.setdefault(one.address, set()).add(node.metadata.name)
    for asked in _names(read_request(spec.request)):
        if isinstance(asked, x509.IPAddress):
            address = ipaddress.ip_address(str(asked.value))
            if others.have(address) or told.get(str(address)) != {name}:
                return False
        elif isinstance(asked, x509.DNSName):
            may_be_others = asked.value in others.hosts or f".{asked.value}".endswith(NOT_OF_NODES)
            is_told = asked.value == name or name in told.get(asked.value, ())
            if may_be_others or not is_told or told.get(asked.value, {name}) != {name}:
                return False
        else:
            return False
    return True


def _names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return list(found.value)


class ServingApprover:
    name = "kubelet-serving-approving"

    def __init__(
        self,
        client: Client,
        requests: Informer[CertificateSigningRequest],
        nodes: Informer[Node],
        others: Others,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._requests, self._nodes, self._others = client, requests, nodes, others
        requests.subscribe(own_key(self.queue))
        nodes.subscribe(self._node_changed)

    async def reconcile(self, key: Key) -> None:
        request = self._requests.get(*key)
        if request is None or not _waits(request):
            return
        if not is_its_own(request, self._nodes.items(), self._others):
            return
        await approve(self._client, request, MESSAGE)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Its addresses may be told after the request."""
        if new is None or (old is not None and old.status.addresses == new.status.addresses):
            return
        for request in self._requests.items():
            if _waits(request) and request.spec.username == f"{NODE}{new.metadata.name}":
                self.queue.add(("", request.metadata.name))


def _waits(request: CertificateSigningRequest) -> bool:
    return request.spec.signer_name == KUBELET_SERVING_SIGNER and not _is_decided(request)


def _is_decided(request: CertificateSigningRequest) -> bool:
    return any(conditions_of(request.status, decision) for decision in (APPROVED, DENIED))


def is_for_its_network(request: CertificateSigningRequest) -> bool:
    """Whether a node asks for its own network, and for nothing beside. Raises ValueError."""
    spec = request.spec
    node = spec.username.removeprefix(NODE)
    if spec.signer_name != CLIENT_SIGNER or NODES not in spec.groups or node in ("", spec.username):
        return False
    if {*spec.usages} - {KEY_ENCIPHERMENT} != {DIGITAL_SIGNATURE, CLIENT_AUTH}:
        return False
    asked = read_request(spec.request)
    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, JOINED_NODES)
    name = x509.NameAttribute(NameOID.COMMON_NAME, f"{JOINED_NODE}{node}")
    return asked.subject == x509.Name([group, name]) and not len(asked.extensions)


class JoinedNodeApprover:
    name = "joined-node-approving"

    def __init__(self, client: Client, requests: Informer[CertificateSigningRequest]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._requests = client, requests
        requests.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        request = self._requests.get(*key)
        if request is not None and not _is_decided(request) and is_for_its_network(request):
            await approve(self._client, request, MESSAGE_OF_NETWORK)
