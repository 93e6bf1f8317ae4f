"""A node learns where the API servers of its cluster are, and knows them at its next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.assemble.node_options import NodeOptions
from podling.assemble.worker import WorkerOptions, api_servers, follow_servers, name_of
from podling.client.balance import Balancer, Place
from podling.machine.instance import Instance
from podling.machine.pki import Authority
from podling.machine.start import StartError
from podling.model.time import SystemClock
from podling.model.types.discovery import Endpoint, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta

FIRST: Place = ("192.0.2.1", 6443)


def slice_of(service: str, *addresses: str, namespace: str = "default") -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service}
    return EndpointSlice(
        metadata=ObjectMeta(name=service, namespace=namespace, labels=labels),
        address_type="IPv4",
        endpoints=[Endpoint(addresses=list(addresses))],
        ports=[SlicePort(name="https", protocol="TCP", port=6443)],
    )


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    return Instance.at(tmp_path)


def test_the_servers_that_the_service_names_are_known_at_the_next_start(instance: Instance) -> None:
    assert api_servers(instance, FIRST) == [FIRST]
    balancer = Balancer([FIRST])
    follow_servers(instance, balancer, slice_of("kubernetes", "192.0.2.2", "192.0.2.1"))
    assert balancer.servers == [FIRST, ("192.0.2.2", 6443)]
    assert api_servers(instance, ("192.0.2.9", 6443)) == [FIRST, ("192.0.2.2", 6443), ("192.0.2.9", 6443)]


def test_one_that_is_gone_is_not_asked_any_more(instance: Instance) -> None:
    balancer = Balancer([FIRST, ("192.0.2.2", 6443)])
    follow_servers(instance, balancer, slice_of("kubernetes", "192.0.2.2"))
    assert balancer.servers == [("192.0.2.2", 6443)]


@pytest.mark.parametrize(
    "found",
    [
        None,
        slice_of("kubernetes"),
        slice_of("kubernetes", "192.0.2.66", namespace="other"),
        slice_of("web", "192.0.2.66"),
    ],
)
def test_nothing_else_says_where_they_are(instance: Instance, found: EndpointSlice | None) -> None:
    """A service without an endpoint, as while all servers start, takes none away."""
    balancer = Balancer([FIRST])
    follow_servers(instance, balancer, found)
    assert balancer.servers == [FIRST]


def test_a_machine_stays_the_node_that_it_has_become(instance: Instance) -> None:
    issued = Authority(instance.pki_dir, SystemClock().now()).client("n", "system:node:n", ["system:nodes"])
    pem = issued.certificate.read_bytes() + issued.key.read_bytes()
    (instance.pki_dir / "kubelet-client-current.pem").write_bytes(pem)
    assert name_of(WorkerOptions(instance)) == "n"
    assert name_of(WorkerOptions(instance, node=NodeOptions(node_name="n"))) == "n"
    with pytest.raises(StartError, match="this machine has joined as n: `podling leave` first"):
        name_of(WorkerOptions(instance, node=NodeOptions(node_name="m")))
