"""A kubelet's server gets a certificate for the addresses of its own node, and for nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podling.controllers.serving_certificates import Others, ServingApprover
from podling.machine.pki import general_name
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
