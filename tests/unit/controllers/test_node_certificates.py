"""A kubelet's server gets a certificate for the addresses of its own node, a node that of its own network,
and nobody another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podling.controllers.node_certificates import JoinedNodeApprover, Others, ServingApprover
from podling.machine.pki import general_name
from podling.model.errors import StatusError
from podling.model.rules.certificates import CLIENT_SIGNER
from podling.model.types.certificates import CertificateSigningRequest, CertificateSigningRequestSpec
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

OTHERS = Others(["192.0.2.1", "kubernetes", "kubernetes.default.svc", "localhost"], ["10.96.0.0/16"])


def asked(hosts: Sequence[str], node: str = "a") -> CertificateSigningRequest:
    names = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    builder = builder.add_extension(x509.SubjectAlternativeName(map(general_name, hosts)), critical=False)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    spec = CertificateSigningRequestSpec(
        request=pem.public_bytes(serialization.Encoding.PEM),
        signer_name="kubernetes.io/kubelet-serving",
        usages=["digital signature", "server auth"],
    )
    return CertificateSigningRequest(metadata=ObjectMeta(name="asked"), spec=spec)


@pytest.fixture
async def approving(cluster: Cluster) -> Cluster:
    requests, nodes = cluster.informers.of(CertificateSigningRequest), cluster.informers.of(Node)
    await cluster.run(ServingApprover(cluster.client, requests, nodes, OTHERS))
    return cluster


async def node(cluster: Cluster, name: str, *addresses: tuple[str, str]) -> None:
    told = [{"type": type_, "address": address} for type_, address in addresses]
    await cluster.make(Node, name, "", status={"addresses": told})


async def is_approved(cluster: Cluster, request: CertificateSigningRequest, node: str = "a") -> bool:
    await cluster.of(f"system:node:{node}", "system:nodes").create(request)
    await cluster.settle()
    found = await cluster.client.get(CertificateSigningRequest, "asked")
    return [one.type for one in found.status.conditions] == ["Approved"]


@pytest.mark.parametrize(
    ("hosts", "approved"),
    [
        (["192.0.2.7", "a"], True),
        (["192.0.2.7", "a.example"], True),
        (["192.0.2.7"], True),
        (["192.0.2.8"], False),
        (["192.0.2.7", "192.0.2.8"], False),
        (["192.0.2.1"], False),
        (["10.96.0.1"], False),
        (["127.0.0.1"], False),
        (["192.0.2.7", "b"], False),
        (["192.0.2.7", "kubernetes"], False),
        (["192.0.2.7", "web.default.svc"], False),
        (["192.0.2.9"], False),
    ],
)
async def test_only_what_is_the_nodes_own_is_approved(
    approving: Cluster, hosts: list[str], approved: bool
) -> None:
    """Though the node says that all of these but one are its addresses."""
    own = ["192.0.2.7", "192.0.2.8", "192.0.2.1", "10.96.0.1", "127.0.0.1"]
    names = ["a.example", "kubernetes", "web.default.svc"]
    told = [*(("InternalIP", one) for one in own), *(("Hostname", one) for one in names)]
    await node(approving, "a", *told)
    await node(approving, "b", ("InternalIP", "192.0.2.8"), ("Hostname", "b"))
    assert await is_approved(approving, asked(hosts)) is approved


async def test_it_waits_until_the_node_says_its_addresses(approving: Cluster) -> None:
    assert not await is_approved(approving, asked(["192.0.2.7"]))
    await node(approving, "a", ("InternalIP", "192.0.2.7"))
    await approving.settle()
    found = await approving.client.get(CertificateSigningRequest, "asked")
    assert [one.reason for one in found.status.conditions] == ["AutoApproved"]


async def test_what_is_for_another_node_or_by_nobodys_kubelet_is_left(approving: Cluster) -> None:
    await node(approving, "a", ("InternalIP", "192.0.2.7"))
    assert not await is_approved(approving, asked(["192.0.2.7"], "b"), "b")


GROUP, CN, OU = NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
OWN = ((GROUP, "podling:nodes"), (CN, "podling:node:a"))
USAGES = ("digital signature", "client auth")


class Network(NamedTuple):
    subject: Sequence[tuple[x509.ObjectIdentifier, str]] = OWN
    user: str = "system:node:a"
    groups: Sequence[str] = ("system:nodes",)
    usages: Sequence[str] = USAGES
    signer: str = CLIENT_SIGNER
    host: str = ""

    def request(self) -> CertificateSigningRequest:
        builder = x509.CertificateSigningRequestBuilder()
        builder = builder.subject_name(x509.Name([x509.NameAttribute(*one) for one in self.subject]))
        if self.host:
            names = x509.SubjectAlternativeName([x509.DNSName(self.host)])
            builder = builder.add_extension(names, critical=False)
        pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        spec = CertificateSigningRequestSpec(
            request=pem.public_bytes(serialization.Encoding.PEM),
            signer_name=self.signer,
            usages=list(self.usages),
        )
        return CertificateSigningRequest(metadata=ObjectMeta(name="asked"), spec=spec)


async def has_network(cluster: Cluster, asked: Network) -> bool:
    requests = cluster.informers.of(CertificateSigningRequest)
    await cluster.run(JoinedNodeApprover(cluster.client, requests))
    await cluster.of(asked.user, *asked.groups).create(asked.request())
    await cluster.settle()
    found = await cluster.client.get(CertificateSigningRequest, "asked")
    return [one.type for one in found.status.conditions] == ["Approved"]


@pytest.mark.parametrize("usages", [USAGES, (*USAGES, "key encipherment")])
async def test_a_node_gets_its_own(cluster: Cluster, usages: Sequence[str]) -> None:
    assert await has_network(cluster, Network(usages=usages))


@pytest.mark.parametrize(
    "asked",
    [
        Network(((GROUP, "podling:nodes"), (CN, "podling:node:b"))),
        Network(((GROUP, "podling:nodes"), (CN, "podling:node:"))),
        Network(((GROUP, "podling:nodes"), (CN, "podling:node:a"), (CN, "admin"))),
        Network(((GROUP, "podling:nodes"), (CN, "admin"), (CN, "podling:node:a"))),
        Network(((GROUP, "podling:nodes"), (CN, "system:node:a"))),
        Network(((GROUP, "podling:nodes"), (GROUP, "system:nodes"), (CN, "podling:node:a"))),
        Network(((GROUP, "system:nodes"), (CN, "podling:node:a"))),
        Network(((GROUP, "devs"), (CN, "podling:node:a"))),
        Network((*OWN, (OU, "podling"))),
        Network(((CN, "podling:node:a"),)),
        Network(((GROUP, "podling:nodes"),)),
        Network(user="system:node:"),
        Network(user="a"),
        Network(user="eve"),
        Network(user="podling:node:a", groups=("podling:nodes",)),
        Network(groups=("podling:nodes",)),
        Network(groups=("devs",)),
        Network(usages=("digital signature", "client auth", "server auth"), signer="example.com/any"),
        Network(usages=("digital signature", "server auth")),
        Network(usages=("client auth",)),
        Network(signer="example.com/any"),
        Network(signer="kubernetes.io/kubelet-serving", usages=("digital signature", "server auth")),
        Network(host="kubernetes.default.svc"),
    ],
)
async def test_nobody_gets_anything_else(cluster: Cluster, asked: Network) -> None:
    """Without an administrator, who may approve what he likes."""
    try:
        assert not await has_network(cluster, asked)
    except StatusError as error:
        # Of what is for kubelets, NodeRestriction lets nobody ask for another's.
        assert error.code in (400, 403)
