"""R-SYS-6: every service has an address of its own."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

SERVICES = "/api/v1/namespaces/default/services"
RANGE = ipaddress.ip_network("10.96.0.0/16")


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_addresses_are_given_once(api: Conversation) -> None:
    answers = await asyncio.gather(*(api.post(SERVICES, service(f"s{n}")) for n in range(50)))
    given = [answer.body["spec"]["clusterIP"] for answer in answers]
    assert len(set(given)) == 50
    assert all(ipaddress.ip_address(address) in RANGE for address in given)
    assert answers[0].body["spec"]["clusterIPs"] == [given[0]]


async def test_an_address_may_be_chosen(api: Conversation) -> None:
    assert (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).status == 201
    taken = await api.post(SERVICES, service("t", clusterIP="10.96.0.10"))
    assert (taken.status, taken.body["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs")
    assert "failed to allocate IP 10.96.0.10: provided IP is already allocated" in taken.message
    outside = await api.post(SERVICES, service("t", clusterIP="10.0.0.1"))
    assert "the provided IP (10.0.0.1) is not in the valid range" in outside.message


async def test_an_address_stays(api: Conversation) -> None:
    made = (await api.post(SERVICES, service())).body
    replaced = await api.put(f"{SERVICES}/s", service(sessionAffinity="ClientIP"))
    assert replaced.body["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    refused = await api.patch(f"{SERVICES}/s", {"spec": {"clusterIP": "10.96.0.77"}})
    assert refused.message == (
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set'
    )
    half = await api.put(f"{SERVICES}/s", service(clusterIP="10.96.0.77"))
    assert half.message == 'Service "s" is invalid: spec.clusterIPs: Required value'


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "a.b"}])
async def test_some_have_none(api: Conversation, spec: dict[str, Any]) -> None:
    made = (await api.post(SERVICES, service(**spec))).body
    assert made["spec"].get("clusterIP", "") == spec.get("clusterIP", "")


async def test_node_ports(api: Conversation) -> None:
    made = (await api.post(SERVICES, service(type="NodePort"))).body
    port = made["spec"]["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    kept = (await api.put(f"{SERVICES}/s", service(type="NodePort"))).body
    assert kept["spec"]["ports"][0]["nodePort"] == port
    taken = await api.post(SERVICES, service("t", type="NodePort", ports=[{"port": 1, "nodePort": port}]))
    assert (
        f"spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated" in taken.message
    )
    outside = await api.post(SERVICES, service("t", type="NodePort", ports=[{"port": 1, "nodePort": 80}]))
    assert "The range of valid ports is 30000-32767" in outside.message


async def test_a_number_of_the_nodes_is_shared_by_protocols_of_one_service_only(api: Conversation) -> None:
    both = [{"name": "u", "port": 53, "protocol": "UDP"}, {"name": "t", "port": 53, "nodePort": 30053}]
    made = (await api.post(SERVICES, service(type="NodePort", ports=both))).body
    assert [port["nodePort"] for port in made["spec"]["ports"]] == [30053, 30053]
    other = service("t", type="NodePort", ports=[{"port": 1, "protocol": "SCTP", "nodePort": 30053}])
    assert "provided port is already allocated" in (await api.post(SERVICES, other)).message
    again = [*made["spec"]["ports"], {"name": "w", "port": 54, "nodePort": 30053}]
    twice = await api.patch(f"{SERVICES}/s", {"spec": {"ports": again}})
    assert (twice.status, twice.message) == (500, "Internal error occurred: duplicate nodePort: {TCP 30053}")


async def test_a_load_balancer_may_do_without_numbers_but_those_it_asks_for(api: Conversation) -> None:
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2, "nodePort": 30002}]
    spec: dict[str, Any]
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports}
    made = (await api.post(SERVICES, service(**spec))).body
    assert [port.get("nodePort", 0) for port in made["spec"]["ports"]] == [0, 30002]
    given = (await api.post(SERVICES, service("t", **{**spec, "ports": [{"port": 1}]}))).body
    assert "nodePort" not in given["spec"]["ports"][0]
    taken = await api.post(SERVICES, service("u", **spec))
    assert "spec.ports[1].nodePort: Invalid value: 30002: provided port is already allocated" in taken.message


LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}


async def test_a_local_load_balancer_is_asked_after_its_health_at_a_number_of_its_own(
    api: Conversation,
) -> None:
    made = (await api.post(SERVICES, service(**LOCAL))).body
    number = made["spec"]["healthCheckNodePort"]
    assert 30000 <= number <= 32767 and number != made["spec"]["ports"][0]["nodePort"]
    kept = (await api.put(f"{SERVICES}/s", service(**LOCAL))).body
    assert kept["spec"]["healthCheckNodePort"] == number
    moved = await api.patch(f"{SERVICES}/s", {"spec": {"healthCheckNodePort": 30777}})
    assert moved.message == 'Service "s" is invalid: spec.healthCheckNodePort: Forbidden: field is immutable'
    taken = await api.post(SERVICES, service("t", **LOCAL, healthCheckNodePort=number))
    why = f"failed to allocate requested HealthCheck NodePort {number}: provided port is already allocated"
    assert (taken.status, taken.message) == (500, f"Internal error occurred: {why}")
    as_port = service("t", type="NodePort", ports=[{"port": 1, "nodePort": number}])
    assert (await api.post(SERVICES, as_port)).status == 422
    gone = (await api.patch(f"{SERVICES}/s", {"spec": {"externalTrafficPolicy": "Cluster"}})).body
    assert "healthCheckNodePort" not in gone["spec"]
    assert (await api.post(SERVICES, as_port)).status == 201


async def test_a_service_that_becomes_one_with_an_address_gets_one(api: Conversation) -> None:
    await api.post(SERVICES, service(type="ExternalName", externalName="a.b", ports=[]))
    changed = await api.patch(f"{SERVICES}/s", {"spec": {"type": "NodePort", "ports": [{"port": 1}]}})
    spec = changed.body["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in RANGE and spec["ports"][0]["nodePort"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    back = await api.patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName"}})
    assert back.status == 200
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & back.body["spec"].keys()
    assert "nodePort" not in back.body["spec"]["ports"][0]


async def test_families_a_cluster_of_one_has_not_are_refused(api: Conversation) -> None:
    refused = await api.post(SERVICES, service(ipFamilyPolicy="RequireDualStack"))
    assert refused.message == (
        'Service "s" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
        "this cluster is not configured for dual-stack services"
    )
    made = (await api.post(SERVICES, service(ipFamilyPolicy="PreferDualStack"))).body["spec"]
    assert (made["ipFamilies"], made["ipFamilyPolicy"]) == (["IPv4"], "PreferDualStack")
