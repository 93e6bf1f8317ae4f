"""R-SYS-1: what a writer of a service may leave out, and what goes with the type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.rules.service.defaults import carry_over
from podling.model.types.service import LoadBalancerIngress, Service

MakeService = Callable[..., Service]

GIVEN: dict[str, Any] = {
    "type": "LoadBalancer",
    "clusterIP": "10.96.0.1",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "externalTrafficPolicy": "Local",
    "healthCheckNodePort": 30500,
    "loadBalancerClass": "a",
    "ports": [{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2, "nodePort": 30002}],
}


def changed(make_service: MakeService, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    new = make_service(**after)
    carry_over(new, make_service(**before))
    spec = new.spec
    return {
        "clusterIP": spec.cluster_ip,
        "clusterIPs": spec.cluster_ips,
        "ipFamilies": spec.ip_families,
        "externalTrafficPolicy": spec.external_traffic_policy,
        "healthCheckNodePort": spec.health_check_node_port,
        "loadBalancerClass": spec.load_balancer_class,
        "allocate": spec.allocate_load_balancer_node_ports,
        "nodePorts": [port.node_port for port in spec.ports],
    }


def test_what_was_given_out_may_be_left_out(make_service: MakeService) -> None:
    sent = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"name": "b", "port": 3}]}
    found = changed(make_service, GIVEN, sent)
    assert (found["clusterIP"], found["clusterIPs"]) == ("10.96.0.1", ["10.96.0.1"])
    assert (found["healthCheckNodePort"], found["nodePorts"]) == (30500, [30002])


def test_a_number_that_went_to_another_port_is_not_kept(make_service: MakeService) -> None:
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2, "nodePort": 30001}]
    assert changed(make_service, GIVEN, {**GIVEN, "ports": ports})["nodePorts"] == [0, 30001]


NO_BALANCER = {
    "externalTrafficPolicy": "",
    "healthCheckNodePort": 0,
    "loadBalancerClass": None,
    "allocate": None,
    "nodePorts": [0, 0],
}
NOWHERE = {**NO_BALANCER, "clusterIP": "", "clusterIPs": [], "ipFamilies": []}
TO_ANOTHER_TYPE = [
    ("ClusterIP", NO_BALANCER),
    ("NodePort", {**NO_BALANCER, "externalTrafficPolicy": "Local", "nodePorts": [30001, 30002]}),
    ("ExternalName", NOWHERE),
]


@pytest.mark.parametrize(("type", "lost"), TO_ANOTHER_TYPE)
def test_what_the_type_has_not_goes_with_it(
    make_service: MakeService, type: str, lost: dict[str, Any]
) -> None:
    sent = {**GIVEN, "type": type, "allocateLoadBalancerNodePorts": True}
    found = changed(make_service, GIVEN, sent)
    assert {key: found[key] for key in lost} == lost


def test_what_a_writer_changed_himself_is_left_for_validation(make_service: MakeService) -> None:
    ports = [{"name": "a", "port": 1, "nodePort": 30009}]
    own = {"healthCheckNodePort": 30501, "loadBalancerClass": "b", "clusterIP": "10.96.0.2", "ports": ports}
    found = changed(make_service, GIVEN, {**GIVEN, **own, "type": "ExternalName"})
    assert (found["healthCheckNodePort"], found["loadBalancerClass"]) == (30501, "b")
    assert (found["clusterIP"], found["nodePorts"]) == ("10.96.0.2", [30009])


ONE, TWO = "10.96.0.1", "10.96.0.2"
ADDRESSES: list[tuple[tuple[str, list[str]], tuple[str, list[str]]]] = [
    ((TWO, [ONE]), (TWO, [TWO])),
    ((ONE, []), (ONE, [ONE])),
    ((TWO, [TWO]), (TWO, [TWO])),
    ((TWO, [ONE, TWO]), (TWO, [ONE, TWO])),
]


@pytest.mark.parametrize(("sent", "meant"), ADDRESSES)
def test_the_two_fields_for_addresses_say_the_same(
    make_service: MakeService, sent: tuple[str, list[str]], meant: tuple[str, list[str]]
) -> None:
    after = {"clusterIP": sent[0], "clusterIPs": sent[1]}
    new, old = make_service(**after), make_service(clusterIP=ONE)
    new.spec.cluster_ips = sent[1]
    carry_over(new, old)
    assert (new.spec.cluster_ip, new.spec.cluster_ips) == meant


def test_where_it_was_reached_is_forgotten_with_the_load_balancer(make_service: MakeService) -> None:
    new, old = make_service(type="ClusterIP"), make_service(**GIVEN)
    new.status.load_balancer.ingress = [LoadBalancerIngress(ip="1.2.3.4")]
    carry_over(new, old)
    assert new.status.load_balancer.ingress == []
